// Cumulative distributions of waits, slowdowns, run times and sizes.
import {addSection, cellOf, make, makeFigure, makeTable} from "./elements.js";
import {figures} from "./figures.js";
import {chartOf} from "./series.js";
import {DAY, HOUR, MINUTE, words} from "./words.js";

/** @type {{id: string, title: string, of: (run: Run) => Float64Array, time: boolean}[]} */
const DISTRIBUTIONS = [
  {id: "wait", title: "Wait", of: (run) => run.job.wait, time: true},
  {id: "bounded", title: "Bounded slowdown", of: (run) => run.job.bounded, time: false},
  {id: "execution", title: "Run time", of: (run) => run.job.execution, time: true},
  {id: "size", title: "Size", of: (run) => run.job.size, time: false},
];
export const TIME_TICKS = [1, 10, MINUTE, 10 * MINUTE, HOUR, 6 * HOUR, DAY, 7 * DAY, 30 * DAY];
const SHARES = [0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 1];
export const POINTS = 300;

/** @type {(state: State) => () => void} */
export function drawDistributions(state) {
  const section = addSection("distributions", "Distributions", "Cumulative share of jobs, on a logarithmic axis; values below one are drawn at one.");
  const grid = make("div", {class: "grid"});
  section.append(grid);
  const panels = DISTRIBUTIONS.map((one) => {
    const holder = make("div", {class: "chart", id: `chart-ecdf-${one.id}`, role: "img"});
    const table = make("div");
    grid.append(makeFigure(`${one.title}${one.id === "size" ? ` (${state.unit}s)` : ""}: share of jobs (%)`, holder, table));
    /** @type {{chart: UPlot | null}} */
    const drawn = {chart: null};
    return {one, holder, table, drawn};
  });
  const draw = () => {
    for (const {one, holder, table, drawn} of panels) {
      const say = one.time ? words.duration : words.figure;
      const sorted = state.runs.map((run) => figures.pick(one.of(run), run.ended).sort());
      const most = Math.log10(Math.max(10, ...sorted.map((values) => values[values.length - 1] || 1)));
      const xs = Array.from({length: POINTS + 1}, (_, at) => (at / POINTS) * most);
      const data = [xs, ...sorted.map((values) => figures.below(values, xs.map((x) => 10 ** x * (1 + 1e-12))).map((share) => (share == null ? null : 100 * share)))];
      const ticks = (one.time ? TIME_TICKS : [1, 10, 100, 1e3, 1e4, 1e5, 1e6]).map(Math.log10).filter((tick) => tick <= most);
      drawn.chart?.destroy();
      drawn.chart = chartOf(holder, {
        data, unit: "%", height: 200, labelX: one.title, sayX: (x) => say(10 ** x), curves: state.runs.map((run) => ({label: run.name})),
        range: () => [0, most], rangeY: () => [0, 100], splits: () => ticks, values: (chart, splits) => splits.map((x) => say(10 ** x)),
      });
      holder.setAttribute("aria-label", `${one.title}: ` + state.runs.map((run, at) => `${run.name}: half of the jobs at most ${say(figures.quantile(sorted[at], 0.5))}`).join("; "));
      const rows = state.runs.map((run, at) => [run.name, ...SHARES.map((share) => cellOf(one.time ? words.brief : words.figure, figures.quantile(sorted[at], share)))]);
      const quantiles = makeTable(`Quantiles: ${one.title}`, [{title: "Run", text: true}, ...SHARES.map((share) => ({title: `${100 * share} %`}))], rows, {fixed: true, hideCaption: true});
      quantiles.classList.add("small");
      table.replaceChildren(quantiles);
    }
  };
  state.onFilter.push(draw);
  draw();
  return draw;
}
