// Other runs of the same jobs compared with the first: changes by job, by class and by label.
import {colours} from "./colours.js";
import {numbersOf} from "./data.js";
import {POINTS} from "./distributions.js";
import {addSection, capital, cellOf, make, makeBehind, makeChoice, makeFigure, makeTable, twice} from "./elements.js";
import {figures} from "./figures.js";
import {jobLink} from "./gantt.js";
import {heatCells, heatTable} from "./heat.js";
import {chartOf, curveTable, middles, timeAxis} from "./series.js";
import {LABELS} from "./state.js";
import {DAY, HOUR, MINUTE, words} from "./words.js";

/** @type {Record<string, [string, (value: Unsure) => string]>} */
const METRICS = {wait: ["Wait", words.duration], turnaround: ["Turnaround", words.duration], bounded_slowdown: ["Bounded slowdown", words.figure]};
const MOST_CHANGED = 10;
/** smaller changes may come from rounding to six decimals and count as none */
const ROUNDED = 2e-6;

/** The jobs in common: their indices in each run's columns. @type {(bytes: Uint8Array, told: Paired) => Uint32Array[] | null} */
function pairsOf(bytes, told) {
  return told.jobs ? told.places.map((place) => Uint32Array.from(numbersOf(bytes, place))) : null;
}

/** Blue for a gain, orange for a loss, the background for neither; `share` from -1 to 1. @type {(share: number) => Colour} */
function diverging(share) {
  const paper = colours.rgb(colours.of("plot")), to = colours.rgb(colours.of(share < 0 ? "gain" : "loss"));
  const part = Math.min(1, Math.abs(share));
  return paper.map((one, at) => Math.round(one + part * (to[at] - one)));
}

/** @type {(state: State, facts: Facts, bytes: Uint8Array) => () => void} */
export function drawCompare(state, facts, bytes) {
  const told = facts.paired;
  if (!told) return () => {};
  const [first, ...others] = state.runs;
  const section = addSection("compare", "Comparison with the first run", `Every other run compared with ${first.name}, job by job: blue is less wait, orange is more.`);
  const pairs = pairsOf(bytes, told);
  if (!told.same_workload) {
    section.append(make("p", {class: "note", role: "note"}, pairs ? `The runs have different workloads. The comparison covers the ${words.whole(told.jobs)} jobs with the same id, submit time and size in all of them.`
      : "The runs have different workloads and no job in common. They are shown side by side, but no jobs are compared."));
  }
  drawPartings(section, state, told);
  if (!pairs) return () => {};
  section.append(pairedFigures(told, state.runs));
  let chosen = 1;
  const holder = make("div");
  if (others.length > 1) {
    section.append(make("div", {class: "bar plain"}, makeChoice("Compared run", others.map((run, at) => /** @type {[string, string]} */ ([`${at + 1}`, run.name])), "1", (value) => {
      chosen = Number(value);
      draw();
    })));
  }
  section.append(holder);
  /** @type {UPlot[]} */
  let charts = [];
  const draw = () => {
    charts.forEach((chart) => chart.destroy());
    charts = [];
    const run = state.runs[chosen];
    /** @type {number[]} */
    const mine = [];
    /** @type {number[]} */
    const theirs = [];
    pairs[0].forEach((job, at) => {
      if (!first.chosen[job]) return;
      mine.push(job);
      theirs.push(pairs[chosen][at]);
    });
    const change = mine.map((job, at) => run.job.wait[theirs[at]] - first.job.wait[job]);
    holder.replaceChildren();
    if (!mine.length) {
      holder.append(make("p", {}, "The filter selects no job that all runs have."));
      return;
    }
    drawSplit(holder, change, run, first);
    charts = drawChanges(holder, state, first, run, mine, change);
    drawChangeHeat(holder, first, run, mine, change);
    drawWho(holder, first, mine, change);
    drawMostChanged(holder, first, run, mine, theirs, change);
  };
  state.onFilter.push(draw);
  draw();
  return draw;
}

/** The first decision of each run that differs from the first run's. @type {(section: Element, state: State, told: Paired) => void} */
function drawPartings(section, state, told) {
  (told.first_decisions || []).forEach((parting, at) => {
    const run = state.runs[at + 1], said = (/** @type {{text: string} | null} */ row) => (row === null ? "no further decision" : row.text);
    section.append(parting === null ? make("p", {}, `${run.name} made the same decisions as ${state.runs[0].name}.`)
      : make("p", {}, `Decision ${words.whole(parting.number)} is the first that differs. `, make("b", {}, state.runs[0].name), `: ${said(parting.first)}. `, make("b", {}, run.name), `: ${said(parting.second)}.`));
  });
}

/** The comparison of all jobs in common: means, quantiles, and differences with their intervals. @type {(told: Paired, runs: Run[]) => HTMLElement} */
function pairedFigures(told, runs) {
  const rows = told.figures.flatMap((figure) => {
    const [title, say] = METRICS[figure.metric];
    return figure.runs.map((one, at) => {
      const against = at ? figure.against_first[at - 1] : null;
      /** @type {Cell[]} */
      const cells = [title, runs[at].name, ...["mean", "p50", "p95", "p100"].map((name) => cellOf(say, one[name]))];
      if (!against) return [...cells, null, null, null];
      const {difference, half_width: wide, better, worse} = against;
      return [...cells, {show: `${difference > 0 ? "+" : ""}${say(difference)}${wide === null ? "" : ` ± ${say(wide)}`}`, value: difference}, cellOf(words.whole, better), cellOf(words.whole, worse)];
    });
  });
  const title = `${words.whole(told.jobs)} jobs ended in all runs; ± is the ${100 * told.level} % interval by batch means`;
  const table = makeTable(title, [{title: "Figure", text: true}, {title: "Run", text: true}, {title: "Mean"}, {title: "Median"}, {title: "95 %"}, {title: "Most"}, {title: `Mean − ${runs[0].name}'s`}, {title: "Jobs better"}, {title: "Jobs worse"}], rows, {fixed: true});
  table.id = "paired-figures";
  return table;
}

/** How many of the selected jobs wait less or longer, and by how much. @type {(holder: Element, change: number[], run: Run, first: Run) => void} */
function drawSplit(holder, change, run, first) {
  const better = change.filter((one) => one < -ROUNDED), worse = change.filter((one) => one > ROUNDED);
  /** @type {(name: string, title: string, value: Unsure, text: string) => HTMLElement} */
  const tile = (name, title, value, text) => make("div", {class: "tile", "data-split": name, "data-value": `${value}`}, make("h3", {}, title), make("p", {class: "big"}, text));
  const mean = figures.mean(change);
  holder.append(make("h3", {}, `${run.name} against ${first.name}: ${words.whole(change.length)} jobs`), make("div", {class: "tiles"},
    tile("mean", "Mean change of the wait", mean, words.change(mean)),
    tile("better", "Wait less", better.length, `${words.whole(better.length)} (${words.percent(better.length / change.length)})`),
    tile("worse", "Wait longer", worse.length, `${words.whole(worse.length)} (${words.percent(worse.length / change.length)})`),
    tile("median", "Median change", figures.statistic(change, "median"), words.change(figures.statistic(change, "median")))));
}

/** The distribution of changes, and the mean change over time. @type {(holder: Element, state: State, first: Run, run: Run, mine: number[], change: number[]) => UPlot[]} */
function drawChanges(holder, state, first, run, mine, change) {
  const grid = make("div", {class: "grid"});
  holder.append(grid);
  const {from, to} = state.whole, count = 120;
  /** @type {(seconds: number) => number} */
  const bend = (seconds) => Math.sign(seconds) * Math.log10(1 + Math.abs(seconds));
  /** @type {(x: number) => number} */
  const back = (x) => Math.sign(x) * (10 ** Math.abs(x) - 1);
  const sorted = Float64Array.from(change).sort();
  const reach = Math.max(1, Math.abs(bend(sorted[0])), Math.abs(bend(sorted[sorted.length - 1])));
  const xs = Array.from({length: POINTS + 1}, (_, at) => -reach + (2 * reach * at) / POINTS);
  const shares = figures.below(sorted, xs.map((x) => back(x) + 1e-9)).map((share) => 100 * (share ?? 0));
  const ticks = [0, MINUTE, HOUR, DAY, 30 * DAY].flatMap((one) => (one ? [-bend(one), bend(one)] : [0])).filter((x) => Math.abs(x) <= reach).sort((one, other) => one - other);
  const byJob = make("div", {class: "chart", id: "chart-changes", role: "img", "aria-label": `Change of each job's wait: half of the jobs at most ${words.change(figures.quantile(sorted, 0.5))}`});
  const overTime = make("div", {class: "chart", id: "chart-change-time", role: "img", "aria-label": "Mean change of the wait by submission"});
  const titles = ["Change of each job's wait: share of jobs (%)", "Mean change of the wait, by when jobs were submitted (h)"], label = `${run.name} − ${first.name}`;
  grid.append(makeFigure(titles[0], byJob, makeBehind("As a table", () => curveTable(titles[0], "At most", [xs.map(back), shares], [label], words.change))),
    makeFigure(titles[1], overTime, makeBehind("As a table", () => curveTable(titles[1], "From", timed, [label], (x) => first.clock.say(x - (to - from) / count / 2)))));
  const charts = [chartOf(byJob, {data: [xs, shares], unit: "%", height: 200, labelX: "Change", sayX: (x) => words.change(back(x)), curves: [{label, colour: 1}],
    range: () => [-reach, reach], rangeY: () => [0, 100], splits: () => ticks, values: (chart, splits) => splits.map((x) => words.change(Math.round(back(x))))})];
  const times = Float64Array.from(mine, (job) => first.job.submit[job]);
  const bins = figures.byTime(times, change, () => true, from, to, count, "mean").map((value) => (value == null ? null : value / HOUR));
  const timed = [middles(from, to, count), bins];
  charts.push(chartOf(overTime, {...timeAxis(first.clock, () => state.whole), data: timed, unit: "h", height: 200, curves: [{label, colour: 1}],
    rangeY: (_, least, most) => [Math.min(0, (least ?? 0) * 1.05), Math.max(0, (most ?? 1) * 1.05) || 1]}));
  return charts;
}

/** Mean change of the wait by size and run time. @type {(holder: Element, first: Run, run: Run, mine: number[], change: number[]) => void} */
function drawChangeHeat(holder, first, run, mine, change) {
  const cells = heatCells(first, mine, (_, at) => change[at]);
  const means = new Map([...cells].map(([key, some]) => [key, figures.mean(some) ?? 0]));
  const most = Math.max(1, ...[...means.values()].map((value) => Math.log(1 + Math.abs(value))));
  holder.append(heatTable("heat-change", "Mean change of the wait by size and run time",
    `Mean change of the wait, ${run.name} − ${first.name}: rows by size in ${run.unit}s, columns by run time in ${first.name}`, cells, means,
    (value) => [`${value > 0 ? "+" : ""}${words.brief(value)}`, diverging((0.85 * Math.sign(value) * Math.log(1 + Math.abs(value))) / most)]));
}

/** Changes by a label of the log. @type {(holder: Element, first: Run, mine: number[], change: number[]) => void} */
function drawWho(holder, first, mine, change) {
  const labels = LABELS.filter((label) => (first.labels[label]?.names.length ?? 0) > 1);
  if (!labels.length) return;
  const part = make("div"), field = makeChoice("Change by", labels.map(twice), labels[0], (value) => draw(value), "change-by");
  holder.append(make("div", {class: "bar plain"}, field), part);
  const draw = (/** @type {string} */ label) => {
    /** @type {Map<string, number[]>} */
    const groups = new Map();
    mine.forEach((job, at) => {
      const name = first.label(label, first.job.first[job]), some = groups.get(name);
      if (some) some.push(change[at]);
      else groups.set(name, [change[at]]);
    });
    const rows = [...groups].map(([name, some]) => {
      const better = some.filter((one) => one < -ROUNDED).length, worse = some.filter((one) => one > ROUNDED).length, total = figures.sum(some);
      return [{show: name || "unknown", value: name}, cellOf(words.whole, some.length), cellOf(words.change, total / some.length),
        {show: `${total > 0 ? "+" : ""}${words.figure(total / HOUR)} h`, value: total / HOUR}, cellOf(words.whole, better), cellOf(words.whole, worse)];
    }).sort((one, other) => Number(one[3].value) - Number(other[3].value));
    const table = makeTable(`Change of waits by ${label}`, [{title: capital(label), text: true}, {title: "Jobs"}, {title: "Mean change"}, {title: "In all"}, {title: "Better"}, {title: "Worse"}], rows, {most: 20, hideCaption: true});
    table.id = "change-table";
    part.replaceChildren(table);
  };
  draw(labels[0]);
}

/** The jobs with the largest gains and losses. @type {(holder: Element, first: Run, run: Run, mine: number[], theirs: number[], change: number[]) => void} */
function drawMostChanged(holder, first, run, mine, theirs, change) {
  const order = Array.from(change.keys()).sort((one, other) => change[one] - change[other]);
  const grid = make("div", {class: "grid"});
  /** @type {(title: string, places: number[]) => void} */
  const list = (title, places) => {
    const rows = places.map((at) => {
      const job = mine[at], other = theirs[at], id = first.id(job);
      return [{show: jobLink(id, [first, job], [run, other]), value: id}, cellOf(words.whole, first.job.size[job]), cellOf(words.duration, first.job.wait[job]), cellOf(words.duration, run.job.wait[other]), cellOf(words.change, change[at])];
    });
    grid.append(makeTable(title, [{title: "Job", text: true}, {title: `${capital(run.unit)}s`}, {title: `Wait, ${first.name}`}, {title: `Wait, ${run.name}`}, {title: "Change"}], rows));
  };
  list("Largest gains", order.slice(0, MOST_CHANGED).filter((at) => change[at] < -ROUNDED));
  list("Largest losses", order.slice(-MOST_CHANGED).reverse().filter((at) => change[at] > ROUNDED));
  holder.append(grid);
}
