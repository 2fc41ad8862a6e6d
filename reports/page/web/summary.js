// The head of the page, the filter, and the figures of the run and of the selected jobs.
import {addSection, byId, capital, cellOf, make, makeChoice, makeTable} from "./elements.js";
import {figures} from "./figures.js";
import {LABELS} from "./state.js";
import {HOUR, words} from "./words.js";

/** @type {Record<string, [string, string, string][]>} */
const FIGURES = {
  Jobs: [["jobs", "Submitted", "count"], ["completed", "Completed", "count"], ["killed_at_walltime", "Killed at their walltime", "count"],
    ["killed", "Killed by the scheduler", "count"], ["rejected", "Rejected", "count"], ["unfinished", "Unfinished", "count"]],
  Waits: [["mean_wait", "Mean wait", "time"], ["median_wait", "Median wait", "time"], ["p95_wait", "95 % waited at most", "time"], ["max_wait", "Longest wait", "time"],
    ["mean_turnaround", "Mean turnaround", "time"], ["max_turnaround", "Longest turnaround", "time"]],
  "Machine and slowdowns": [["utilisation", "Utilisation", "share"], ["computing", "Held by jobs (UNIT-h)", "work"], ["makespan", "Makespan", "time"], ["mean_slowdown", "Mean slowdown", "number"],
    ["max_slowdown", "Largest slowdown", "number"], ["mean_bounded_slowdown", "Mean bounded slowdown", "number"], ["max_bounded_slowdown", "Largest bounded slowdown", "number"]],
};

/** The figures shown first. */
const TILES = ["utilisation", "mean_wait", "p95_wait", "mean_bounded_slowdown"];

/** The figures of the summary for the selected jobs, calculated from the columns. @type {(run: Run) => Record<string, number | null>} */
function figuresOf(run) {
  const {ended} = run, counts = new Array(run.state.names.length).fill(0);
  const refused = run.state.names.indexOf("REJECTED"), running = run.state.names.indexOf("RUNNING");
  const submitted = run.count;
  for (let job = 0; job < run.jobs; job++) {
    const state = run.state.of[run.job.last[job]];
    if (run.chosen[job] && (run.job.ended[job] || state === refused)) counts[state]++;
  }
  const count = (/** @type {string} */ name) => counts[run.state.names.indexOf(name)] ?? 0;
  const waits = figures.pick(run.job.wait, ended).sort(), rejected = count("REJECTED");
  /** @type {Record<string, number | null>} */
  const found = {jobs: submitted, completed: count("COMPLETED_SUCCESSFULLY") + count("COMPLETED_FAILED"), killed_at_walltime: count("COMPLETED_WALLTIME_REACHED"),
    killed: count("COMPLETED_KILLED"), rejected, unfinished: submitted - ended.length - rejected};
  Object.assign(found, {mean_wait: figures.mean(waits), median_wait: figures.quantile(waits, 0.5), p95_wait: figures.quantile(waits, 0.95), max_wait: figures.quantile(waits, 1)});
  for (const [name, column] of Object.entries({turnaround: run.job.turnaround, slowdown: run.job.slowdown, bounded_slowdown: run.job.bounded})) {
    const values = figures.pick(column, ended);
    found[`mean_${name}`] = figures.mean(values);
    found[`max_${name}`] = values.length ? values.reduce((most, value) => Math.max(most, value)) : null;
  }
  // Like the summary: attempts that ended; those still running count only if the run stopped at a horizon.
  const horizon = run.facts.summary?.horizon;
  const work = [];
  let last = 0, first = Infinity;
  for (let row = 0; row < run.rows; row++) {
    const state = run.state.of[row];
    if (state !== running) first = Math.min(first, run.submit[row]);
    if (state === refused || (state === running && horizon === undefined)) continue;
    if (state !== running) last = Math.max(last, run.end[row]);
    if (run.chosen[run.jobOf[row]]) work.push(run.execution[row] * run.held[row]);
  }
  const span = (horizon ?? last) - (Number.isFinite(first) ? first : 0);
  const computing = figures.sum(work);
  found.computing = computing;
  found.utilisation = span > 0 && work.length ? computing / (run.amount * span) : null;
  found.makespan = ended.length ? ended.reduce((most, job) => Math.max(most, run.job.end[job]), 0) : null;
  return found;
}

/** @type {(kind: string, value: Unsure) => string} */
function figureText(kind, value) {
  if (value === null || value === undefined) return "–";
  if (kind === "count") return words.whole(value);
  if (kind === "share") return words.percent(value, 2);
  if (kind === "time") return words.duration(value);
  if (kind === "work") return words.figure(value / HOUR);
  return words.figure(value);
}

/** @type {(state: State, facts: Facts) => void} */
export function drawHead(state, facts) {
  const runs = state.runs, first = runs[0];
  const head = byId("top");
  const span = `${first.clock.say(state.whole.from)} to ${first.clock.say(state.whole.to)}`;
  const workloads = [...new Set(runs.flatMap((run) => Object.values(run.facts.config.workloads).map((one) => one.name)))];
  head.append(make("h1", {}, runs.map((run) => run.name).join(" and ")),
    make("p", {class: "lead"}, `${workloads.join(", ")} on ${first.facts.machine.name}: ${first.takes ? `${words.count(first.units, "node")}, ${first.takes.resources.map((one) => words.amount(one.name, one.total)).join(", ")}` : `${words.whole(first.units)} units`}, `,
      `${words.whole(first.jobs)} jobs, ${span}${first.clock.dated ? ` (${first.clock.zone})` : ""}`));
  for (const run of runs) for (const note of notesOf(run, facts)) head.append(make("p", {class: "note", role: "note"}, `${runs.length > 1 ? `${run.name}: ` : ""}${note}`));
}

/** Warnings about the figures. @type {(run: Run, facts: Facts) => string[]} */
function notesOf(run, facts) {
  const found = [], summary = run.facts.summary, made = run.facts.config.versions?.pipistrelle;
  const end = run.clock.say(run.facts.until);
  if (!summary) {
    found.push(`${run.facts.goes_on ? "The run is in progress" : "The run was cut short"}: it is shown up to the end of its outputs, ${end}. `
      + "Figures cover the jobs that had ended; queued jobs are not in the outputs.");
  } else if (!["completed", "stopped"].includes(summary.reason)) {
    const why = summary.reason === "horizon" ? "at its horizon" : `early (${summary.reason}${summary.message ? `: ${summary.message}` : ""})`;
    found.push(`The run ended ${why}, at ${end}: ${words.whole(summary.unfinished)} jobs were unfinished.`);
  }
  if (made && made !== facts.version) found.push(`The outputs were written by pipistrelle ${made}, this page by ${facts.version}.`);
  if (!Object.keys(run.labels).length) found.push("The workload does not name users, groups, accounts or queues.");
  return found;
}

/** @param {State} state */
export function drawFilter(state) {
  const bar = make("form", {class: "bar", role: "search", "aria-label": "Filter jobs", onsubmit: (/** @type {Event} */ event) => event.preventDefault()});
  const said = make("output", {class: "said"});
  for (const label of LABELS) {
    const counts = new Map();
    for (const run of state.runs) {
      const column = run.labels[label];
      for (let job = 0; column && job < run.jobs; job++) {
        const name = run.label(label, run.job.first[job]);
        counts.set(name, (counts.get(name) || 0) + 1);
      }
    }
    if (counts.size < 2) continue;
    const sorted = [...counts].sort((one, other) => other[1] - one[1]);
    const numbered = sorted.map(([name], at) => /** @type {[string, string]} */ ([`${at}`, name || "unknown"]));
    bar.append(makeChoice(capital(label), [["", "all"], ...numbered], "",
      (value) => state.setFilter({[label]: value === "" ? null : sorted[Number(value)][0]}), `filter-${label}`));
  }
  /** @type {(id: string, title: string, name: string) => HTMLElement} */
  const bound = (id, title, name) => make("label", {class: "field"}, make("span", {}, title),
    make("input", {id, type: "number", min: 1, max: Math.max(...state.runs.map((run) => run.amount)), inputMode: "numeric", placeholder: "any",
      onchange: (/** @type {{target: HTMLInputElement}} */ {target}) => state.setFilter({[name]: target.value === "" ? null : Number(target.value)})}));
  bar.append(bound("filter-least", `${capital(state.unit)}s from`, "least"), bound("filter-most", "to", "most"),
    make("button", {type: "button", id: "filter-clear", onclick: () => {
      bar.reset();
      state.clearFilter();
    }}, "All jobs"), said);
  const tell = () => {
    said.textContent = state.runs.map((run) => `${state.runs.length > 1 ? `${run.name}: ` : ""}${words.whole(run.count)} of ${words.whole(run.jobs)} jobs`).join("; ");
  };
  state.onFilter.push(tell);
  tell();
  byId("top").after(bar);
}

/** How jobs used each resource of shared nodes, over the whole run and for all jobs. @type {(run: Run, several: boolean) => HTMLElement | null} */
function resourceTable(run, several) {
  /** @type {Record<string, Record<string, number>> | undefined} */
  const told = run.facts.summary?.resources;
  if (!told) return null;
  const rows = Object.entries(told).map(([name, one]) => [capital(words.resource(name)), cellOf((amount) => words.amount(name, amount), one.total), cellOf((share) => words.percent(share, 2), one.utilisation),
    cellOf(words.percent, one.used ? one.idle / one.used : null), cellOf(words.percent, one.used ? one.fragmented / one.used : null)]);
  const table = makeTable(`${several ? `${run.name}: resources` : "Resources"}; idle and fragmented in % of used`,
    [{title: "Resource", text: true}, {title: "In all"}, {title: "Utilisation"}, {title: "Idle", tip: "Free on nodes that are up while jobs wait"}, {title: "Fragmented", tip: "The part of it on nodes on which no waiting job fits"}], rows, {fixed: true});
  table.id = `resources-${run.number}`;
  return table;
}

/** @param {State} state */
export function drawSummary(state) {
  const section = addSection("summary", "Summary", null);
  const tiles = make("div", {class: "tiles"}), holder = make("div", {class: "grid three"});
  section.append(tiles, holder);
  const draw = () => {
    const found = state.runs.map(figuresOf);
    /** @type {(run: Run, at: number, name: string) => Unsure} */
    const whole = (run, at, name) => (run.facts.summary ? run.facts.summary[name] : found[at][name]);
    tiles.replaceChildren(...Object.values(FIGURES).flat().filter(([name]) => TILES.includes(name)).sort((one, other) => TILES.indexOf(one[0]) - TILES.indexOf(other[0])).map(([name, title, kind]) =>
      make("div", {class: "tile"}, make("h3", {}, title), state.runs.map((run, at) => {
        const value = state.filtered ? found[at][name] : whole(run, at, name);
        return make("p", {class: "big"}, figureText(kind, value), state.runs.length > 1 ? make("span", {class: "of"}, run.name) : null);
      }))));
    holder.replaceChildren(...Object.entries(FIGURES).map(([part, some]) => {
      /** @type {TableColumn[]} */
      const columns = [{title: part, text: true}];
      for (const run of state.runs) {
        columns.push({title: state.runs.length > 1 ? run.name : "The run"});
        if (state.filtered) columns.push({title: `${state.runs.length > 1 ? `${run.name}, ` : ""}selected jobs`});
      }
      const rows = some.map(([name, title, kind]) => [title.replace("UNIT", state.unit), ...state.runs.flatMap((run, at) => {
        const all = whole(run, at, name), cells = [{show: figureText(kind, all), value: all ?? null}];
        if (state.filtered) cells.push({show: figureText(kind, found[at][name]), value: found[at][name] ?? null});
        return cells;
      })]);
      const table = makeTable(`Summary: ${part}`, columns, rows, {fixed: true, hideCaption: true});
      [...table.querySelectorAll("tbody tr")].forEach((row, at) => row.setAttribute("data-figure", some[at][0]));
      return table;
    }), ...state.runs.flatMap((run) => resourceTable(run, state.runs.length > 1) ?? []));
  };
  state.onFilter.push(draw);
  draw();
}
