"use strict";
// Curves over time: utilisation, queue, backlog, waits and slowdowns. All show the same part of the time.

const BINS = 240;
const STATISTICS = [["mean", "mean"], ["median", "median"], ["p95", "95 %"], ["most", "most"]];

/** What can be drawn over time; each gives a value, or null, for each bin of a run. */
const SERIES = [
  {id: "utilisation", title: "Utilisation", unit: "%", most: 100,
    of: (run, from, to) => figures.overTime(run.start, run.end, (row) => (100 * run.held[row]) / run.units, (row) => run.chosen[run.jobOf[row]], from, to, BINS)},
  {id: "queue", title: "Jobs that wait", unit: "jobs",
    of: (run, from, to) => figures.overTime(run.submit, run.start, () => 1, (row) => run.chosen[run.jobOf[row]], from, to, BINS)},
  {id: "backlog", title: "Backlog: work that waits, as hours of the whole machine", unit: "h",
    of: (run, from, to) => figures.overTime(run.submit, run.start, (row) => (run.size[row] * run.execution[row]) / run.units / HOUR, (row) => run.chosen[run.jobOf[row]], from, to, BINS)},
  {id: "waits", title: "Wait, by when jobs were submitted", unit: "h", statistic: true,
    of: (run, from, to, name) => byTimeOf(run, run.job.wait, from, to, name).map((value) => (value === null ? null : value / HOUR))},
  {id: "slowdowns", title: "Bounded slowdown, by when jobs were submitted", unit: "", statistic: true,
    of: (run, from, to, name) => byTimeOf(run, run.job.bounded, from, to, name)},
];

function byTimeOf(run, values, from, to, name) {
  return figures.byTime(run.job.submit, values, (job) => run.chosen[job] && run.job.ended[job], from, to, BINS, name);
}

/** A chart of some curves by uPlot, with the axes and colours of the page. */
function chartOf(holder, options) {
  const axis = {stroke: colours.of("muted"), font: "12px system-ui, sans-serif", grid: {stroke: colours.of("line"), width: 1}, ticks: {stroke: colours.of("line"), width: 1, size: 4}};
  const chart = new uPlot({
    width: Math.max(280, holder.clientWidth), height: options.height || 170,
    padding: [8, 12, 0, 0],
    cursor: {drag: {x: Boolean(options.dragged), y: false, setScale: false}, points: {size: 6}, ...(options.cursor || {})},
    legend: {show: true, live: true},
    scales: {x: {time: false, range: options.range}, y: {range: options.rangeY || ((chart, least, most) => [Math.min(0, least ?? 0), (most || 1) * 1.05])}},
    axes: [
      {...axis, space: 70, splits: options.splits, values: options.values, size: 30},
      {...axis, size: 58, gap: 4, values: (chart, splits) => splits.map((value) => (options.sayY || words.tick)(value))},
    ],
    series: [{label: options.labelX, value: (chart, value) => (value === null ? "–" : options.sayX(value))}, ...options.curves.map((curve, at) => ({
      label: curve.label, stroke: colours.series(curve.colour ?? at), width: 1.5, dash: curve.dash || [], spanGaps: false, points: {show: false},
      value: (chart, value) => (value === null || value === undefined ? "–" : `${words.figure(value)}${options.unit ? ` ${options.unit}` : ""}`),
    }))],
    hooks: {setSelect: [(chart) => {
      if (options.dragged && chart.select.width > 4) {
        options.dragged(chart.posToVal(chart.select.left, "x"), chart.posToVal(chart.select.left + chart.select.width, "x"));
      }
      chart.setSelect({left: 0, top: 0, width: 0, height: 0}, false);
    }]},
  }, options.data, holder);
  chart.root.querySelector(".u-legend").setAttribute("aria-hidden", "true");  // what it says is in the table
  return chart;
}

/** What curves show, as a table: a row for each point. */
function curveTable(title, first, data, labels, sayX) {
  const rows = data[0].map((x, at) => [{show: sayX(x), value: x}, ...labels.map((_, curve) => ({show: words.figure(data[curve + 1][at]), value: data[curve + 1][at]}))]);
  return elements.table(title, [{title: first, text: true}, ...labels.map((label) => ({title: label}))], rows);
}

function drawSeries(state) {
  const make = elements.make;
  const section = elements.section("time", "Over time",
    "Drag across a chart, or zoom the machine below, to look at a part of the time. Each point is the mean over its stretch of time, or of the jobs submitted in it.");
  const bar = make("div", {class: "bar plain"}, elements.choice("Waits and slowdowns:", STATISTICS, state.statistic, (value) => {
    state.statistic = value;
    draw();
  }), make("button", {type: "button", onclick: () => state.setView(state.whole.from, state.whole.to)}, "Whole time"), make("output", {class: "said"}));
  section.append(bar);
  const clock = state.runs[0].clock;
  const panels = SERIES.map((one) => {
    const holder = make("div", {class: "chart", id: `chart-${one.id}`, role: "img"});
    const table = elements.behind("As a table", () => tableOf(one));
    section.append(make("figure", {}, make("figcaption", {}, `${one.title}${one.unit ? ` (${one.unit})` : ""}`), holder, table));
    return {one, holder, table, chart: null, data: null};
  });

  const xs = () => {
    const {from, to} = state.view;
    return Array.from({length: BINS}, (_, bin) => from + ((bin + 0.5) * (to - from)) / BINS);
  };
  const tableOf = (one) => curveTable(`${one.title}${one.unit ? ` (${one.unit})` : ""}`, "From", panels.find((other) => other.one === one).data,
    state.runs.map((run) => run.name), (time) => clock.say(time - (state.view.to - state.view.from) / BINS / 2));
  const draw = () => {
    const {from, to} = state.view;
    bar.querySelector("output").textContent = `${clock.say(from)} to ${clock.say(to)}`;
    for (const panel of panels) {
      const {one} = panel;
      panel.data = [xs(), ...state.runs.map((run) => one.of(run, from, to, state.statistic))];
      panel.table.open = false;
      const about = state.runs.map((run, at) => {
        const values = panel.data[at + 1].filter((value) => value !== null);
        return `${run.name}: on average ${words.figure(figures.mean(values))}, at most ${words.figure(values.length ? Math.max(...values) : null)}`;
      });
      panel.holder.setAttribute("aria-label", `${one.title}, ${clock.say(from)} to ${clock.say(to)}. ${about.join("; ")}.`);
      if (panel.chart) {
        panel.chart.setData(panel.data);
        continue;
      }
      panel.chart = chartOf(panel.holder, {
        data: panel.data, unit: one.unit, labelX: "Time", sayX: (value) => clock.say(value),
        curves: state.runs.map((run) => ({label: run.name})),
        range: () => [state.view.from, state.view.to],
        rangeY: one.most ? () => [0, one.most] : null,
        splits: (chart) => clock.ticks(state.view.from, state.view.to, chart.width / 90).at,
        values: (chart, splits) => {
          const {label} = clock.ticks(state.view.from, state.view.to, chart.width / 90);
          return splits.map(label);
        },
        cursor: {sync: {key: "time"}},
        dragged: (low, high) => state.setView(low, high),
      });
      panel.holder.addEventListener("dblclick", () => state.setView(state.whole.from, state.whole.to));
    }
  };
  state.onView.push(calmly(draw, 80));
  state.onFilter.push(draw);
  draw();
  return () => {  // other colours, or another width
    for (const panel of panels) {
      panel.chart.destroy();
      panel.chart = null;
    }
    draw();
  };
}
