// Waits by size and run time: a table with cells coloured by value.
import {colours} from "./colours.js";
import {addSection, capital, make, makeChoice} from "./elements.js";
import {figures} from "./figures.js";
import {STATISTICS} from "./series.js";
import {DAY, HOUR, MINUTE, words} from "./words.js";

export const RUNTIMES = /** @type {[string, number][]} */ ([["< 1 min", MINUTE], ["< 10 min", 10 * MINUTE], ["< 1 h", HOUR], ["< 6 h", 6 * HOUR], ["< 1 d", DAY], ["longer", Infinity]]);

/** Sizes in powers of four: 1, 2 to 4, 5 to 16, ... @type {(size: number) => number} */
function sizeClass(size) {
  return Math.ceil(Math.log2(Math.max(1, size)) / 2 - 1e-12);
}

/** @type {(number: number) => string} */
function sizeName(number) {
  return number === 0 ? "1" : `${words.whole(4 ** (number - 1) + 1)}–${words.whole(4 ** number)}`;
}

/**
 * Values of jobs by the class of each job: its row by size, its column by run time.
 * @type {(run: Run, jobs: ArrayLike<number>, valueOf: (job: number, at: number) => number) => Map<string, number[]>}
 */
export function heatCells(run, jobs, valueOf) {
  /** @type {Map<string, number[]>} */
  const cells = new Map();
  for (let at = 0; at < jobs.length; at++) {
    const job = jobs[at], column = RUNTIMES.findIndex(([, bound]) => run.job.execution[job] < bound), key = `${sizeClass(run.job.size[job])} ${column}`;
    const some = cells.get(key);
    if (some) some.push(valueOf(job, at));
    else cells.set(key, [valueOf(job, at)]);
  }
  return cells;
}

/**
 * A table with a value per class; `say` returns the text and the colour of a value.
 * @type {(id: string, label: string, caption: string, cells: Map<string, number[]>, values: Map<string, number>, say: (value: number) => [string, Colour], unit?: string) => HTMLElement}
 */
export function heatTable(id, label, caption, cells, values, say, unit = "unit") {
  const largest = Math.max(0, ...[...cells.keys()].map((key) => parseInt(key, 10)));
  const rows = Array.from({length: largest + 1}, (_, row) => make("tr", {}, make("th", {scope: "row"}, sizeName(row)), RUNTIMES.map((_, column) => {
    const key = `${row} ${column}`, some = cells.get(key), value = values.get(key);
    if (!some || value === undefined) return make("td", {class: "none"}, "");
    const [text, rgb] = say(value);
    const cell = make("td", {"data-value": `${value}`, "data-jobs": `${some.length}`}, make("b", {}, text), make("small", {}, `${words.whole(some.length)} jobs`));
    cell.style.background = `rgb(${rgb.join(" ")})`;
    cell.style.color = colours.on(rgb);
    return cell;
  })));
  const heads = make("tr", {}, make("th", {scope: "col"}, `${capital(unit)}s`), RUNTIMES.map(([title]) => make("th", {scope: "col"}, title)));
  return make("div", {class: "scroll", tabIndex: 0, role: "region", "aria-label": label},
    make("table", {class: "heat", id}, make("caption", {}, caption), make("thead", {}, heads), make("tbody", {}, rows)));
}

/** @type {(state: State) => () => void} */
export function drawHeat(state) {
  const section = addSection("heat", "Waits by size and run time", "The wait of jobs by size and run time, and the number of jobs.");
  let name = "mean";
  const holder = make("div", {class: "grid"});
  section.append(make("div", {class: "bar plain"}, makeChoice("Wait:", STATISTICS, name, (value) => {
    name = value;
    draw();
  })), holder);
  const draw = () => {
    const found = state.runs.map((run) => {
      const cells = heatCells(run, run.ended, (job) => run.job.wait[job]);
      return {run, cells, values: new Map([...cells].map(([key, waits]) => [key, figures.statistic(waits, name) ?? 0]))};
    });
    // one scale for all runs
    const logs = found.flatMap(({values}) => [...values.values()].map((value) => Math.log(1 + value)));
    const least = Math.min(...logs), apart = Math.max(...logs) - least || 1;
    const title = STATISTICS.find((one) => one[0] === name)?.[1];
    holder.replaceChildren(...found.map(({run, cells, values}) => heatTable(`heat-${run.number}`, `Waits by size and run time, ${run.name}`,
      `${run.name}: ${title} wait, rows by size in ${run.unit}s, columns by run time`, cells, values,
      (value) => [words.brief(value), colours.scale(0.1 + 0.8 * (Math.log(1 + value) - least) / apart)], run.unit)));
  };
  state.onFilter.push(draw);
  draw();
  return draw;
}
