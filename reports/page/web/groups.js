// Jobs by user, group, account, queue and QOS; fairshare targets and delivery.
import {addSection, capital, cellOf, make, makeChoice, makeTable, shareBar, twice} from "./elements.js";
import {figures} from "./figures.js";
import {LABELS} from "./state.js";
import {HOUR, words} from "./words.js";

/** @typedef {{jobs: number, waits: number[], bounded: number[], works: number[]}} Group */

/** Totals by name of a label, over the selected jobs or all. @type {(run: Run, label: string, all?: boolean) => Map<string, Group & {work: number}>} */
function groupsOf(run, label, all = false) {
  const column = run.labels[label];
  /** @type {Map<string, Group>} */
  const found = new Map();
  if (!column) return new Map();
  /** @type {(row: number) => Group} */
  const of = (row) => {
    const name = column.names[column.of[row]], group = found.get(name) ?? {jobs: 0, waits: [], bounded: [], works: []};
    found.set(name, group);
    return group;
  };
  for (let job = 0; job < run.jobs; job++) {
    if (!all && !run.chosen[job]) continue;
    const group = of(run.job.first[job]);
    group.jobs++;
    if (run.job.ended[job]) {
      group.waits.push(run.job.wait[job]);
      group.bounded.push(run.job.bounded[job]);
    }
  }
  for (let row = 0; row < run.rows; row++) {
    if (run.held[row] && (all || run.chosen[run.jobOf[row]])) of(row).works.push(run.held[row] * run.execution[row]);
  }
  return new Map([...found].map(([name, group]) => [name, {...group, work: figures.sum(group.works)}]));
}

/** @type {(state: State) => () => void} */
export function drawGroups(state) {
  const labels = LABELS.filter((label) => state.runs.some((run) => run.labels[label] && run.labels[label].names.length > 1));
  if (!labels.length) return () => {};
  const section = addSection("groups", "By user and group", "Work and waits of the jobs by label. Click a heading to sort.");
  let label = labels[0];
  const holder = make("div");
  const field = makeChoice("By", labels.map(twice), label, (value) => {
    label = value;
    draw();
  }, "groups-by");
  section.append(make("div", {class: "bar plain"}, field), holder);
  const draw = () => {
    const found = state.runs.map((run) => groupsOf(run, label));
    const totals = found.map((groups) => figures.sum([...groups.values()].map((group) => group.work)));
    const names = [...new Set(found.flatMap((groups) => [...groups.keys()]))];
    const several = state.runs.length > 1;
    /** @type {TableColumn[]} */
    const columns = [{title: capital(label), text: true}, {title: "Jobs"}];
    for (const run of state.runs) {
      const prefix = several ? `${run.name}: ` : "";
      // several runs side by side leave room only for columns in which they differ
      if (!several) columns.push({title: `${capital(state.unit)}-hours`});
      columns.push({title: `${prefix}share`}, {title: `${prefix}mean wait`}, {title: `${prefix}median`}, {title: `${prefix}95 %`}, {title: `${prefix}mean bounded slowdown`});
    }
    const rows = names.map((name) => ({jobs: found[0].get(name)?.jobs ?? 0, cells: state.runs.flatMap((_, at) => {
      const group = found[at].get(name);
      if (!group) return new Array(several ? 5 : 6).fill(null);
      const waits = Float64Array.from(group.waits).sort(), share = group.work / totals[at];
      const times = [figures.mean(waits), figures.quantile(waits, 0.5), figures.quantile(waits, 0.95)];
      return [...(several ? [] : [cellOf(words.figure, group.work / HOUR)]), cellOf(shareBar, share), ...times.map((value) => cellOf(words.duration, value)),
        cellOf(words.figure, figures.mean(group.bounded))];
    }), name})).sort((one, other) => (other.cells[0]?.value ?? 0) - (one.cells[0]?.value ?? 0));
    const table = makeTable(`Jobs by ${label}`, columns, rows.map(({name, jobs, cells}) => [{show: name || "unknown", value: name}, cellOf(words.whole, jobs), ...cells]), {most: 20, hideCaption: true});
    table.id = "groups-table";
    holder.replaceChildren(table);
  };
  state.onFilter.push(draw);
  draw();
  drawFairshare(state, section);
  return draw;
}

/** Fairshare targets and delivered shares, if the scheduler had targets. @type {(state: State, section: Element) => void} */
function drawFairshare(state, section) {
  for (const run of state.runs) {
    for (const {label, targets, how} of run.facts.fairshare) {
      if (!run.labels[label]) continue;
      const groups = groupsOf(run, label, true);
      const total = figures.sum([...groups.values()].map((group) => group.work));
      const rows = Object.entries(targets).sort((one, other) => other[1] - one[1]).map(([name, target]) => {
        const share = total ? (groups.get(name)?.work ?? 0) / total : null;
        return [name, cellOf(words.percent, target), {show: shareBar(share, 1, target), value: share}, {show: share === null ? "–" : `${share >= target ? "+" : "−"}${words.percent(Math.abs(share - target))}`, value: share === null ? null : share - target}];
      });
      const table = makeTable(`${run.name}: fairshare target by ${label} (${how}) and share of all ${run.unit}-hours delivered; the mark is the target`,
        [{title: capital(label), text: true}, {title: "Target"}, {title: "Delivered"}, {title: "Difference"}], rows, {most: 20});
      table.classList.add("fairshare");
      section.append(table);
    }
  }
}
