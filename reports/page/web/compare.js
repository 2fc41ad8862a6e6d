"use strict";
// Several runs of the same jobs: what each did with them against the first, by job and by classes; who gains, who loses.

const METRICS = {wait: ["Wait", words.duration], turnaround: ["Turnaround", words.duration], bounded_slowdown: ["Bounded slowdown", words.figure]};
const MOST_CHANGED = 10;
/** a change that the outputs' six decimals may have made is none */
const ROUNDED = 2e-6;

/** The jobs in common: their places in each run's columns. */
function pairsOf(bytes, told) {
  return told.jobs ? told.places.map((place) => Uint32Array.from(numbersOf(bytes, place))) : null;
}

/** A difference in the reader's words: less wait is a gain. */
function changeText(seconds) {
  if (seconds === null || !Number.isFinite(seconds)) return "–";
  return seconds === 0 ? "0 s" : `${seconds > 0 ? "+" : ""}${words.duration(seconds)}`;
}

/** Blue for a gain, orange for a loss, the paper for neither; `share` from -1 to 1. */
function diverging(share) {
  const paper = colours.rgb(colours.of("plot")), to = colours.rgb(colours.of(share < 0 ? "gain" : "loss"));
  const part = Math.min(1, Math.abs(share));
  return paper.map((one, at) => Math.round(one + part * (to[at] - one)));
}

function drawCompare(state, facts, bytes) {
  const told = facts.paired;
  if (!told) return () => {};
  const make = elements.make, [first, ...others] = state.runs;
  const section = elements.section("compare", "Against the first run", `Every other run against ${first.name}, job by job: blue is less wait, orange is more.`);
  const pairs = pairsOf(bytes, told);
  if (!told.same_workload) {
    section.append(make("p", {class: "note", role: "note"}, pairs ? `The runs are of different workloads: compared are the ${words.whole(told.jobs)} jobs that all of them have, of the same id, submit time and size.`
      : "The runs are of different workloads and have no job in common: they stand beside each other, and no job is compared."));
  }
  drawPartings(section, state, told);
  if (!pairs) return () => {};
  section.append(pairedFigures(told, state.runs));
  let chosen = 1;
  const holder = make("div");
  if (others.length > 1) {
    section.append(make("div", {class: "bar plain"}, elements.choice("Compared run", others.map((run, at) => [`${at + 1}`, run.name]), "1", (value) => {
      chosen = Number(value);
      draw();
    })));
  }
  section.append(holder);
  let charts = [];
  const draw = () => {
    charts.forEach((chart) => chart.destroy());
    charts = [];
    const run = state.runs[chosen], mine = [], theirs = [];
    pairs[0].forEach((job, at) => {
      if (!first.chosen[job]) return;
      mine.push(job);
      theirs.push(pairs[chosen][at]);
    });
    const change = mine.map((job, at) => run.job.wait[theirs[at]] - first.job.wait[job]);
    holder.replaceChildren();
    if (!mine.length) {
      holder.append(make("p", {}, "No job in common fits what is chosen."));
      return;
    }
    drawSplit(holder, change, run, first);
    charts = drawChanges(holder, state, first, run, mine, change);
    drawChangeHeat(holder, first, run, mine, change);
    drawWho(holder, first, mine, change);
    drawMostChanged(holder, state, first, run, mine, theirs, change);
  };
  state.onFilter.push(draw);
  draw();
  return draw;
}

/** The first decision of each run that is another than the first run's. */
function drawPartings(section, state, told) {
  const make = elements.make;
  (told.first_decisions || []).forEach((parting, at) => {
    const run = state.runs[at + 1], said = (row) => (row === null ? "none, all was decided" : row.text);
    section.append(parting === null ? make("p", {}, `${run.name} decided as ${state.runs[0].name} did, every time.`)
      : make("p", {}, `Decision ${words.whole(parting.number)} is the first that differs. `, make("b", {}, state.runs[0].name), `: ${said(parting.first)}. `, make("b", {}, run.name), `: ${said(parting.second)}.`));
  });
}

/** What compare tells of all jobs in common: means and quantiles, differences with their intervals. */
function pairedFigures(told, runs) {
  const rows = told.figures.flatMap((figure) => {
    const [title, say] = METRICS[figure.metric];
    const cell = (value) => ({show: say(value), value});
    return figure.runs.map((one, at) => {
      const against = at ? figure.against_first[at - 1] : null;
      const sign = (value) => `${value > 0 ? "+" : ""}${say(value)}`;
      return [title, runs[at].name, cell(one.mean), cell(one.p50), cell(one.p95), cell(one.p100),
        against ? {show: `${sign(against.difference)}${against.half_width === null ? "" : ` ± ${say(against.half_width)}`}`, value: against.difference} : null,
        against ? {show: words.whole(against.better), value: against.better} : null, against ? {show: words.whole(against.worse), value: against.worse} : null];
    });
  });
  const title = `${words.whole(told.jobs)} jobs ended in all runs; ± is the ${100 * told.level} % interval by batch means`;
  const table = elements.table(title, [{title: "Of each job", text: true}, {title: "Run", text: true}, {title: "Mean"}, {title: "Median"}, {title: "95 %"}, {title: "Most"}, {title: `Mean − ${runs[0].name}'s`}, {title: "Jobs better"}, {title: "Jobs worse"}], rows, {fixed: true});
  table.id = "paired-figures";
  return table;
}

/** How many jobs of those chosen gain and lose, and how much in all. */
function drawSplit(holder, change, run, first) {
  const make = elements.make;
  const better = change.filter((one) => one < -ROUNDED), worse = change.filter((one) => one > ROUNDED);
  const tile = (name, title, value, text) => make("div", {class: "tile", "data-split": name, "data-value": `${value}`}, make("h3", {}, title), make("p", {class: "big"}, text));
  const mean = figures.mean(change);
  holder.append(make("h3", {}, `${run.name} against ${first.name}: ${words.whole(change.length)} jobs`), make("div", {class: "tiles"},
    tile("mean", "Mean change of the wait", mean, changeText(mean)),
    tile("better", "Wait less", better.length, `${words.whole(better.length)} (${words.percent(better.length / change.length)})`),
    tile("worse", "Wait longer", worse.length, `${words.whole(worse.length)} (${words.percent(worse.length / change.length)})`),
    tile("median", "Median change", figures.statistic(change, "median"), changeText(figures.statistic(change, "median")))));
}

/** Changes by job: how many changed by how much; and over time. */
function drawChanges(holder, state, first, run, mine, change) {
  const make = elements.make, grid = make("div", {class: "grid"});
  holder.append(grid);
  const {from, to} = state.whole, count = 120;
  const bend = (seconds) => Math.sign(seconds) * Math.log10(1 + Math.abs(seconds)), back = (x) => Math.sign(x) * (10 ** Math.abs(x) - 1);
  const sorted = Float64Array.from(change).sort();
  const reach = Math.max(1, Math.abs(bend(sorted[0])), Math.abs(bend(sorted.at(-1))));
  const xs = Array.from({length: POINTS + 1}, (_, at) => -reach + (2 * reach * at) / POINTS);
  const shares = figures.below(sorted, xs.map((x) => back(x) + 1e-9)).map((share) => 100 * share);
  const ticks = [0, MINUTE, HOUR, DAY, 30 * DAY].flatMap((one) => (one ? [-bend(one), bend(one)] : [0])).filter((x) => Math.abs(x) <= reach).sort((one, other) => one - other);
  const byJob = make("div", {class: "chart", id: "chart-changes", role: "img", "aria-label": `Change of each job's wait: half of the jobs at most ${changeText(figures.quantile(sorted, 0.5))}`});
  const overTime = make("div", {class: "chart", id: "chart-change-time", role: "img", "aria-label": "Mean change of the wait by submission"});
  const titles = ["Change of each job's wait: share of jobs (%)", "Mean change of the wait, by when jobs were submitted (h)"], label = `${run.name} − ${first.name}`;
  grid.append(make("figure", {}, make("figcaption", {}, titles[0]), byJob, elements.behind("As a table", () => curveTable(titles[0], "At most", [xs.map(back), shares], [label], changeText))),
    make("figure", {}, make("figcaption", {}, titles[1]), overTime, elements.behind("As a table", () => curveTable(titles[1], "From", timed, [label], (x) => first.clock.say(x - (to - from) / count / 2)))));
  const charts = [chartOf(byJob, {data: [xs, shares], unit: "%", height: 200, labelX: "Change", sayX: (x) => changeText(back(x)), curves: [{label: `${run.name} − ${first.name}`, colour: 1}],
    range: () => [-reach, reach], rangeY: () => [0, 100], splits: () => ticks, values: (chart, splits) => splits.map((x) => changeText(Math.round(back(x))))})];
  const times = Float64Array.from(mine, (job) => first.job.submit[job]);
  const bins = figures.byTime(times, change, () => true, from, to, count, "mean").map((value) => (value === null ? null : value / HOUR));
  const timed = [bins.map((_, bin) => from + ((bin + 0.5) * (to - from)) / count), bins];
  const clockTicks = (chart) => first.clock.ticks(from, to, chart.width / 90);
  charts.push(chartOf(overTime, {data: timed, unit: "h", height: 200, labelX: "Time", sayX: (value) => first.clock.say(value), curves: [{label: `${run.name} − ${first.name}`, colour: 1}],
    range: () => [from, to], rangeY: (chart, least, most) => [Math.min(0, (least ?? 0) * 1.05), Math.max(0, (most ?? 1) * 1.05) || 1], splits: (chart) => clockTicks(chart).at, values: (chart, splits) => splits.map(clockTicks(chart).label)}));
  return charts;
}

/** Mean change of the wait by size and run time. */
function drawChangeHeat(holder, first, run, mine, change) {
  const make = elements.make, cells = new Map();
  let largest = 0;
  mine.forEach((job, at) => {
    const row = sizeClass(first.job.size[job]), column = RUNTIMES.findIndex(([, bound]) => first.job.execution[job] < bound), key = `${row} ${column}`;
    largest = Math.max(largest, row);
    if (!cells.has(key)) cells.set(key, []);
    cells.get(key).push(change[at]);
  });
  const means = new Map([...cells].map(([key, some]) => [key, figures.mean(some)]));
  const most = Math.max(1, ...[...means.values()].map((value) => Math.log(1 + Math.abs(value))));
  const table = make("table", {class: "heat", id: "heat-change"}, make("caption", {}, `Mean change of the wait, ${run.name} − ${first.name}: rows by size in units, columns by run time in ${first.name}`),
    make("thead", {}, make("tr", {}, make("th", {scope: "col"}, "Units"), RUNTIMES.map(([title]) => make("th", {scope: "col"}, title)))),
    make("tbody", {}, Array.from({length: largest + 1}, (_, row) => make("tr", {}, make("th", {scope: "row"}, sizeName(row)), RUNTIMES.map((_, column) => {
      const some = cells.get(`${row} ${column}`);
      if (!some) return make("td", {class: "none"}, "");
      const value = means.get(`${row} ${column}`), rgb = diverging((0.85 * Math.sign(value) * Math.log(1 + Math.abs(value))) / most);
      const cell = make("td", {"data-value": `${value}`, "data-jobs": `${some.length}`}, make("b", {}, `${value > 0 ? "+" : ""}${words.brief(value)}`), make("small", {}, `${words.whole(some.length)} jobs`));
      cell.style.background = `rgb(${rgb.join(" ")})`;
      cell.style.color = colours.on(rgb);
      return cell;
    })))));
  holder.append(make("div", {class: "scroll", tabIndex: 0, role: "region", "aria-label": "Mean change of the wait by size and run time"}, table));
}

/** Who gains and who loses: by a label of the log. */
function drawWho(holder, first, mine, change) {
  const make = elements.make, labels = LABELS.filter((label) => first.labels[label] && first.labels[label].names.length > 1);
  if (!labels.length) return;
  const part = make("div"), field = elements.choice("Who gains and who loses, by", labels.map((one) => [one, one]), labels[0], (value) => draw(value));
  field.querySelector("select").id = "change-by";
  holder.append(make("div", {class: "bar plain"}, field), part);
  const draw = (label) => {
    const groups = new Map(), column = first.labels[label];
    mine.forEach((job, at) => {
      const name = column.names[column.of[first.job.first[job]]];
      if (!groups.has(name)) groups.set(name, []);
      groups.get(name).push(change[at]);
    });
    const rows = [...groups].map(([name, some]) => {
      const better = some.filter((one) => one < -ROUNDED).length, worse = some.filter((one) => one > ROUNDED).length, total = figures.sum(some);
      return [{show: name || "unknown", value: name}, {show: words.whole(some.length), value: some.length}, {show: changeText(total / some.length), value: total / some.length},
        {show: `${total > 0 ? "+" : ""}${words.figure(total / HOUR)} h`, value: total / HOUR}, {show: words.whole(better), value: better}, {show: words.whole(worse), value: worse}];
    }).sort((one, other) => one[3].value - other[3].value);
    const table = elements.table(`Change of waits by ${label}`, [{title: label[0].toUpperCase() + label.slice(1), text: true}, {title: "Jobs"}, {title: "Mean change"}, {title: "In all"}, {title: "Better"}, {title: "Worse"}], rows, {most: 20, hideCaption: true});
    table.id = "change-table";
    part.replaceChildren(table);
  };
  draw(labels[0]);
}

/** The jobs that gain most and those that lose most. */
function drawMostChanged(holder, state, first, run, mine, theirs, change) {
  const make = elements.make, order = Array.from(change.keys()).sort((one, other) => change[one] - change[other]);
  const grid = make("div", {class: "grid"});
  const list = (title, places) => {
    const rows = places.map((at) => {
      const show = make("button", {type: "button", class: "link", title: "Show it on the machine", onclick: () => {
        first.gantt.find(mine[at]);
        run.gantt.find(theirs[at]);
        document.getElementById("machine").scrollIntoView();
      }}, first.id(mine[at]));
      const wait = (value) => ({show: words.duration(value), value});
      return [{show, value: first.id(mine[at])}, {show: words.whole(first.job.size[mine[at]]), value: first.job.size[mine[at]]}, wait(first.job.wait[mine[at]]), wait(run.job.wait[theirs[at]]), {show: changeText(change[at]), value: change[at]}];
    });
    grid.append(elements.table(title, [{title: "Job", text: true}, {title: "Units"}, {title: `Wait, ${first.name}`}, {title: `Wait, ${run.name}`}, {title: "Change"}], rows));
  };
  list("Gain most", order.slice(0, MOST_CHANGED).filter((at) => change[at] < -ROUNDED));
  list("Lose most", order.slice(-MOST_CHANGED).reverse().filter((at) => change[at] > ROUNDED));
  holder.append(grid);
}
