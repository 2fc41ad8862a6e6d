"use strict";
// Whose jobs: by user, group, account, queue and QOS; what each was to have of the machine, and what it had.

/** What the jobs of each name had: of a run, by a label. */
function groupsOf(run, label) {
  const column = run.labels[label], found = new Map();
  if (!column) return found;
  const of = (name) => {
    if (!found.has(name)) found.set(name, {jobs: 0, waits: [], bounded: [], work: []});
    return found.get(name);
  };
  for (let job = 0; job < run.jobs; job++) {
    if (!run.chosen[job]) continue;
    const group = of(column.names[column.of[run.job.first[job]]]);
    group.jobs++;
    if (run.job.ended[job]) {
      group.waits.push(run.job.wait[job]);
      group.bounded.push(run.job.bounded[job]);
    }
  }
  for (let row = 0; row < run.rows; row++) {
    if (run.held[row] && run.chosen[run.jobOf[row]]) of(column.names[column.of[row]]).work.push(run.held[row] * run.execution[row]);
  }
  for (const group of found.values()) group.work = figures.sum(group.work);
  return found;
}

function drawGroups(state) {
  const make = elements.make;
  const labels = LABELS.filter((label) => state.runs.some((run) => run.labels[label] && run.labels[label].names.length > 1));
  if (!labels.length) return () => {};
  const section = elements.section("groups", "By whom", "What the jobs of each had, and how long they waited. A click on a heading sorts.");
  let label = labels[0];
  const holder = make("div");
  const field = elements.choice("By", labels.map((one) => [one, one]), label, (value) => {
    label = value;
    draw();
  });
  field.querySelector("select").id = "groups-by";
  section.append(make("div", {class: "bar plain"}, field), holder);
  const draw = () => {
    const found = state.runs.map((run) => groupsOf(run, label));
    const totals = found.map((groups) => figures.sum([...groups.values()].map((group) => group.work)));
    const names = [...new Set(found.flatMap((groups) => [...groups.keys()]))];
    const several = state.runs.length > 1;
    const columns = [{title: label[0].toUpperCase() + label.slice(1), text: true}, {title: "Jobs"}];
    for (const run of state.runs) {
      const prefix = several ? `${run.name}: ` : "";
      // beside each other there is room for what runs differ in
      if (!several) columns.push({title: "Unit-hours"});
      columns.push({title: `${prefix}share`}, {title: `${prefix}mean wait`}, {title: `${prefix}median`}, {title: `${prefix}95 %`}, {title: `${prefix}mean bounded slowdown`});
    }
    const time = (value) => ({show: words.duration(value), value});
    const rows = names.map((name) => [{show: name || "unknown", value: name}, {show: words.whole(found[0].get(name)?.jobs ?? 0), value: found[0].get(name)?.jobs ?? 0}, ...state.runs.flatMap((run, at) => {
      const group = found[at].get(name);
      if (!group) return new Array(several ? 5 : 6).fill(null);
      const waits = Float64Array.from(group.waits).sort(), share = group.work / totals[at];
      const bar = make("span", {class: "share"}, make("i"), words.percent(share));
      bar.firstChild.style.width = `${90 * share}px`;
      return [...(several ? [] : [{show: words.figure(group.work / HOUR), value: group.work / HOUR}]), {show: bar, value: share}, time(figures.mean(waits)), time(figures.quantile(waits, 0.5)), time(figures.quantile(waits, 0.95)),
        {show: words.figure(figures.mean(group.bounded)), value: figures.mean(group.bounded)}];
    })]).sort((one, other) => (other[2]?.value ?? 0) - (one[2]?.value ?? 0));
    const table = elements.table(`Jobs by ${label}`, columns, rows, {most: 20, hideCaption: true});
    table.id = "groups-table";
    holder.replaceChildren(table);
  };
  state.onFilter.push(draw);
  draw();
  drawFairshare(state, section);
  return draw;
}

/** Fairshare targets against what was delivered, where the run's scheduler was told targets. */
function drawFairshare(state, section) {
  const make = elements.make;
  for (const run of state.runs) {
    for (const {label, targets, how} of run.facts.fairshare) {
      if (!run.labels[label]) continue;
      const chosen = run.chosen;
      run.chosen = new Uint8Array(run.jobs).fill(1);
      const groups = groupsOf(run, label);
      run.chosen = chosen;
      const total = figures.sum([...groups.values()].map((group) => group.work));
      const rows = Object.entries(targets).sort((one, other) => other[1] - one[1]).map(([name, target]) => {
        const share = total ? (groups.get(name)?.work ?? 0) / total : null;
        const bar = make("span", {class: "share both"}, make("i"), make("u"), words.percent(share));
        bar.children[0].style.width = `${90 * (share ?? 0)}px`;
        bar.children[1].style.left = `${90 * target}px`;
        return [name, {show: words.percent(target), value: target}, {show: bar, value: share}, {show: share === null ? "–" : `${share >= target ? "+" : "−"}${words.percent(Math.abs(share - target))}`, value: share === null ? null : share - target}];
      });
      const table = elements.table(`${run.name}: fairshare target by ${label} (${how}) against the share of all unit-hours delivered; the mark is the target`,
        [{title: label[0].toUpperCase() + label.slice(1), text: true}, {title: "Target"}, {title: "Delivered"}, {title: "Difference"}], rows, {most: 20});
      table.classList.add("fairshare");
      section.append(table);
    }
  }
}
