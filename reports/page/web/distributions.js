"use strict";
// Which share of the jobs had at most so much: waits, slowdowns, run times, sizes.

const DISTRIBUTIONS = [
  {id: "wait", title: "Wait", of: (run) => run.job.wait, time: true},
  {id: "bounded", title: "Bounded slowdown", of: (run) => run.job.bounded, time: false},
  {id: "execution", title: "Run time", of: (run) => run.job.execution, time: true},
  {id: "size", title: "Size (units)", of: (run) => run.job.size, time: false},
];
const TIME_TICKS = [1, 10, MINUTE, 10 * MINUTE, HOUR, 6 * HOUR, DAY, 7 * DAY, 30 * DAY];
const SHARES = [0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 1];
const POINTS = 300;

function drawDistributions(state) {
  const make = elements.make;
  const section = elements.section("distributions", "Distributions", "The share of the jobs that had at most so much, on a logarithmic axis; what is below one stands at one.");
  const grid = make("div", {class: "grid"});
  section.append(grid);
  const panels = DISTRIBUTIONS.map((one) => {
    const holder = make("div", {class: "chart", id: `chart-ecdf-${one.id}`, role: "img"});
    const table = make("div");
    grid.append(make("figure", {}, make("figcaption", {}, `${one.title}: share of jobs (%)`), holder, table));
    return {one, holder, table, chart: null};
  });
  const draw = (anew = true) => {
    for (const panel of panels) {
      const {one} = panel, say = (value) => (one.time ? words.duration(value) : words.figure(value));
      const sorted = state.runs.map((run) => figures.pick(one.of(run), run.ended).sort());
      const most = Math.log10(Math.max(10, ...sorted.map((values) => values.at(-1) || 1)));
      const xs = Array.from({length: POINTS + 1}, (_, at) => (at / POINTS) * most);
      const data = [xs, ...sorted.map((values) => figures.below(values, xs.map((x) => 10 ** x * (1 + 1e-12))).map((share) => (share === null ? null : 100 * share)))];
      const ticks = (one.time ? TIME_TICKS : [1, 10, 100, 1e3, 1e4, 1e5, 1e6]).map(Math.log10).filter((tick) => tick <= most);
      if (panel.chart) panel.chart.destroy();
      panel.chart = anew || !panel.chart ? chartOf(panel.holder, {
        data, unit: "%", height: 200, labelX: one.title, sayX: (x) => say(10 ** x), curves: state.runs.map((run) => ({label: run.name})),
        range: () => [0, most], rangeY: () => [0, 100], splits: () => ticks, values: (chart, splits) => splits.map((x) => say(10 ** x)),
      }) : panel.chart;
      panel.holder.setAttribute("aria-label", `${one.title}: ` + state.runs.map((run, at) => `${run.name}: half of the jobs at most ${say(figures.quantile(sorted[at], 0.5))}`).join("; "));
      const rows = state.runs.map((run, at) => [run.name, ...SHARES.map((share) => {
        const value = figures.quantile(sorted[at], share);
        return {show: one.time ? words.brief(value) : words.figure(value), value};
      })]);
      panel.table.replaceChildren(elements.table(`Quantiles: ${one.title}`, [{title: "Run", text: true}, ...SHARES.map((share) => ({title: `${100 * share} %`}))], rows, {fixed: true, hideCaption: true}));
      panel.table.firstChild.classList.add("small");
    }
  };
  state.onFilter.push(draw);
  draw();
  return draw;
}
