// Curves over time: utilisation, queue, backlog, waits and slowdowns. All show the same interval.
import {colours} from "./colours.js";
import {addSection, cellOf, make, makeBehind, makeChoice, makeFigure, makeTable} from "./elements.js";
import {figures} from "./figures.js";
import {calmly} from "./state.js";
import {HOUR, words} from "./words.js";

export const BINS = 240;
export const STATISTICS = /** @type {[string, string][]} */ ([["mean", "mean"], ["median", "median"], ["p95", "95 %"], ["most", "most"]]);

/** @typedef {{id: string, title: string, unit: string, most?: number, of: (run: Run, from: number, to: number, name: string) => Unsure[]}} Series */

/** The curves over time; each has a value, or null, per bin of a run. @type {Series[]} */
const SERIES = [
  {id: "utilisation", title: "Utilisation", unit: "%", most: 100,
    of: (run, from, to) => figures.overTime(run.start, run.end, (row) => (100 * run.held[row]) / run.amount, (row) => run.chosen[run.jobOf[row]], from, to, BINS)},
  {id: "queue", title: "Jobs that wait", unit: "jobs",
    of: (run, from, to) => figures.overTime(run.submit, run.start, () => 1, (row) => run.chosen[run.jobOf[row]], from, to, BINS)},
  {id: "backlog", title: "Backlog: work that waits, as hours of the whole machine", unit: "h",
    of: (run, from, to) => figures.overTime(run.submit, run.start, (row) => (run.size[row] * run.execution[row]) / run.amount / HOUR, (row) => run.chosen[run.jobOf[row]], from, to, BINS)},
  {id: "waits", title: "Wait, by when jobs were submitted", unit: "h",
    of: (run, from, to, name) => byTimeOf(run, run.job.wait, from, to, name).map((value) => (value == null ? null : value / HOUR))},
  {id: "slowdowns", title: "Bounded slowdown, by when jobs were submitted", unit: "",
    of: (run, from, to, name) => byTimeOf(run, run.job.bounded, from, to, name)},
];

/** The curves of a page: on shared nodes, the use of each resource comes first. @type {(runs: Run[]) => Series[]} */
function seriesOf(runs) {
  const names = new Set(runs.flatMap((run) => run.takes?.resources.map((one) => one.name) ?? []));
  if (!names.size) return SERIES;
  const used = [...names].map((name) => /** @type {Series} */ ({
    ...SERIES[0], id: name === "cores" ? "utilisation" : `utilisation-${name}`, title: `Utilisation of ${words.resource(name)}`, of: (run, from, to) => useOf(run, name, from, to),
  }));
  return [...used, ...SERIES.slice(1)];
}

/** The share of a resource that jobs hold, in percent; null if the machine does not have it. @type {(run: Run, name: string, from: number, to: number) => Unsure[]} */
function useOf(run, name, from, to) {
  const {takes} = run, resource = takes?.resource(name);
  if (!takes || !resource) return name === "cores" ? SERIES[0].of(run, from, to, "") : new Array(BINS).fill(null);
  return figures.overTime(run.start, run.end, (row) => (100 * takes.amount(resource, row)) / resource.total, (row) => run.chosen[run.jobOf[row]], from, to, BINS);
}

/** @type {(run: Run, values: Float64Array, from: number, to: number, name: string) => Unsure[]} */
function byTimeOf(run, values, from, to, name) {
  return figures.byTime(run.job.submit, values, (job) => run.chosen[job] && run.job.ended[job], from, to, BINS, name);
}

/** A chart of some curves by uPlot, with the axes and colours of the page. @type {(holder: HTMLElement, options: ChartOptions) => UPlot} */
export function chartOf(holder, options) {
  const axis = {stroke: colours.of("muted"), font: "12px system-ui, sans-serif", grid: {stroke: colours.of("line"), width: 1}, ticks: {stroke: colours.of("line"), width: 1, size: 4}};
  /** @type {NonNullable<ChartOptions["rangeY"]>} */
  const upward = (_, least, most) => [Math.min(0, least ?? 0), (most || 1) * 1.05];
  /** @type {ChartOptions["values"]} */
  const tickTexts = (_, splits) => splits.map(words.tick);
  /** @type {(chart: UPlot, value: Unsure) => string} */
  const sayX = (_, value) => (value == null ? "–" : options.sayX(value));
  /** @type {(chart: UPlot, value: Unsure) => string} */
  const sayY = (_, value) => (value == null ? "–" : `${words.figure(value)}${options.unit ? ` ${options.unit}` : ""}`);
  /** @type {(chart: UPlot) => void} */
  const selected = (chart) => {
    const {left, width} = chart.select;
    if (options.dragged && width > 4) options.dragged(chart.posToVal(left, "x"), chart.posToVal(left + width, "x"));
    chart.setSelect({left: 0, top: 0, width: 0, height: 0}, false);
  };
  const chart = new uPlot({
    width: Math.max(280, holder.clientWidth), height: options.height || 170,
    padding: [8, 12, 0, 0],
    cursor: {drag: {x: Boolean(options.dragged), y: false, setScale: false}, points: {size: 6}, ...(options.cursor || {})},
    legend: {show: true, live: true},
    scales: {x: {time: false, range: options.range}, y: {range: options.rangeY || upward}},
    axes: [
      {...axis, space: 70, splits: options.splits, values: options.values, size: 30},
      {...axis, size: 58, gap: 4, values: tickTexts},
    ],
    series: [{label: options.labelX, value: sayX}, ...options.curves.map((curve, at) => ({
      label: curve.label, stroke: colours.series(curve.colour ?? at), width: 1.5, dash: curve.dash || [], spanGaps: false, points: {show: false},
      value: sayY,
    }))],
    hooks: {setSelect: [selected]},
  }, options.data, holder);
  chart.root.querySelector(".u-legend")?.setAttribute("aria-hidden", "true");  // what it says is in the table
  return chart;
}

/** The time axis: its ends, ticks and labels. @type {(clock: Clock, view: () => {from: number, to: number}) => Pick<ChartOptions, "labelX" | "sayX" | "range" | "splits" | "values">} */
export function timeAxis(clock, view) {
  /** @type {(chart: UPlot) => Ticks} */
  const ticks = (chart) => clock.ticks(view().from, view().to, chart.width / 90);
  return {labelX: "Time", sayX: (time) => clock.say(time), range: () => [view().from, view().to], splits: (chart) => ticks(chart).at, values: (chart, splits) => splits.map(ticks(chart).label)};
}

/** The middles of `count` equal bins of time. @type {(from: number, to: number, count: number) => number[]} */
export function middles(from, to, count) {
  return Array.from({length: count}, (_, bin) => from + ((bin + 0.5) * (to - from)) / count);
}

/** The points of curves as a table. @type {(title: string, first: string, data: ChartData, labels: string[], sayX: (x: number) => string) => HTMLElement} */
export function curveTable(title, first, data, labels, sayX) {
  const rows = Array.from(data[0], (x, at) => [cellOf(sayX, Number(x)), ...labels.map((_, curve) => cellOf(words.figure, data[curve + 1][at]))]);
  return makeTable(title, [{title: first, text: true}, ...labels.map((label) => ({title: label}))], rows);
}

/** @param {State} state */
export function drawSeries(state) {
  const section = addSection("time", "Over time",
    "Drag across a chart, or zoom the machine below, to show a shorter interval. Each point is a mean over its interval, or over the jobs submitted in it.");
  const said = make("output", {class: "said"});
  section.append(make("div", {class: "bar plain"}, makeChoice("Waits and slowdowns:", STATISTICS, state.statistic, (value) => {
    state.statistic = value;
    draw();
  }), make("button", {type: "button", onclick: () => state.setView(state.whole.from, state.whole.to)}, "Whole time"), said));
  const clock = state.runs[0].clock;
  const panels = seriesOf(state.runs).map((one) => {
    const holder = make("div", {class: "chart", id: `chart-${one.id}`, role: "img"});
    const title = `${one.title}${one.unit ? ` (${one.unit})` : ""}`;
    /** @type {{chart: UPlot | null, data: ChartData}} */
    const drawn = {chart: null, data: []};
    const table = makeBehind("As a table", () => curveTable(title, "From", drawn.data, state.runs.map((run) => run.name), (time) => clock.say(time - (state.view.to - state.view.from) / BINS / 2)));
    section.append(makeFigure(title, holder, table));
    return {one, holder, table, drawn};
  });

  const draw = () => {
    const {from, to} = state.view;
    said.textContent = `${clock.say(from)} to ${clock.say(to)}`;
    for (const {one, holder, table, drawn} of panels) {
      drawn.data = [middles(from, to, BINS), ...state.runs.map((run) => one.of(run, from, to, state.statistic))];
      table.open = false;
      const about = state.runs.map((run, at) => {
        const values = Array.from(drawn.data[at + 1]).filter((value) => value != null);
        return `${run.name}: on average ${words.figure(figures.mean(values))}, at most ${words.figure(values.length ? Math.max(...values) : null)}`;
      });
      holder.setAttribute("aria-label", `${one.title}, ${clock.say(from)} to ${clock.say(to)}. ${about.join("; ")}.`);
      if (drawn.chart) {
        drawn.chart.setData(drawn.data);
        continue;
      }
      const {most} = one;
      drawn.chart = chartOf(holder, {
        ...timeAxis(clock, () => state.view), data: drawn.data, unit: one.unit, curves: state.runs.map((run) => ({label: run.name})),
        rangeY: most ? () => [0, most] : null, cursor: {sync: {key: "time"}}, dragged: (low, high) => state.setView(low, high),
      });
      holder.addEventListener("dblclick", () => state.setView(state.whole.from, state.whole.to));
    }
  };
  state.onView.push(calmly(draw, 80));
  state.onFilter.push(draw);
  draw();
  return () => {  // other colours, or another width
    for (const {drawn} of panels) {
      drawn.chart?.destroy();
      drawn.chart = null;
    }
    draw();
  };
}
