// Start estimates of queued jobs at moments spread over the run, and actual starts.
import {colours} from "./colours.js";
import {numbersOf} from "./data.js";
import {POINTS, TIME_TICKS} from "./distributions.js";
import {penOn} from "./drawing.js";
import {addSection, capital, cellOf, make, makeBehind, makeChoice, makeFigure, makeTable} from "./elements.js";
import {figures} from "./figures.js";
import {jobLink} from "./gantt.js";
import {chartOf, timeAxis} from "./series.js";
import {DAY, HOUR, MINUTE, words} from "./words.js";

const ERROR_TICKS = [-7 * DAY, -DAY, -6 * HOUR, -HOUR, -10 * MINUTE, 0, 10 * MINUTE, HOUR, 6 * HOUR, DAY, 7 * DAY];
const ERROR_SHARES = [0.05, 0.25, 0.5, 0.75, 0.95];
const EXPECTED = /** @type {[string, number][]} */ ([["at most 10 min", 10 * MINUTE], ["at most 1 h", HOUR], ["at most 6 h", 6 * HOUR], ["at most 1 d", DAY], ["more", Infinity]]);
const CLOUD = {height: 300, left: 66, right: 12, top: 8, bottom: 40};
/** Smaller errors (s) count as none. */
const PUNCTUAL = MINUTE;

/** Minutes on an axis that is linear around zero and logarithmic far from it. @type {(seconds: number) => number} */
function bent(seconds) {
  return Math.sign(seconds) * Math.log10(1 + Math.abs(seconds) / MINUTE);
}

/** The estimates of a run as columns. @type {(run: Run, bytes: Uint8Array, told: Places) => Estimates} */
function readEstimates(run, bytes, told) {
  const column = (/** @type {string} */ name) => numbersOf(bytes, told[name]), job = column("job");
  return {run, job, moment: column("moment"), times: column("times"), expected: column("expected"), started: column("started"), count: job.length};
}

/** @typedef {{run: Run, job: Float64Array, moment: Float64Array, times: Float64Array, expected: Float64Array, started: Float64Array, count: number}} Estimates */
/** @typedef {ReturnType<typeof errorsOf>} Errors */

/** Whether the filter leaves out a job; unknown jobs are left out by every filter. @type {(run: Run, job: number) => boolean} */
function leftOut(run, job) {
  return job < 0 ? run.count < run.jobs : !run.chosen[job];
}

/** Results for the selected jobs: lines with an estimate and a start, their errors, and numbers of the others. @param {Estimates} found */
function errorsOf(found) {
  const {run} = found;
  /** @type {number[]} */
  const lines = [];
  /** @type {number[]} */
  const errors = [];
  let all = 0, unknown = 0, open = 0;
  for (let line = 0; line < found.count; line++) {
    const job = found.job[line];
    if (leftOut(run, job)) continue;
    all++;
    if (found.expected[line] < 0) unknown++;
    else if (found.started[line] < 0) open++;
    else {
      lines.push(line);
      errors.push(found.started[line] - found.expected[line]);
    }
  }
  return {found, run, all, unknown, open, lines, errors, sorted: Float64Array.from(errors).sort()};
}

/** @type {(state: State, bytes: Uint8Array) => () => void} */
export function drawEstimates(state, bytes) {
  const all = state.runs.flatMap((run) => (run.facts.estimates ? [readEstimates(run, bytes, run.facts.estimates)] : []));
  if (!all.length) return () => {};
  const clock = state.runs[0].clock;
  const section = addSection("estimates", "Start estimates of queued jobs",
    "At moments spread over the run: when the policy expected each queued job to start if every job ran for its full walltime and no further job were submitted, "
    + "and when it started. The error is the actual start minus the expected one: + is later than expected.");
  const figuresPart = make("div"), grid = make("div", {class: "grid"}), list = make("div");
  section.append(figuresPart, grid);
  /** @type {(title: string, id: string) => {holder: HTMLElement, part: HTMLElement, chart: UPlot | null}} */
  const figure = (title, id) => {
    const holder = make("div", {class: "chart", id, role: "img"});
    const part = makeFigure(title, holder);
    grid.append(part);
    return {holder, part, chart: null};
  };
  const spread = figure("Error: cumulative share of estimates (%)", "chart-estimates-errors");
  const overTime = figure("Median error at each moment (h)", "chart-estimates-time");
  const clouds = all.map((one) => {
    const canvas = make("canvas", {class: "cloud", id: `estimates-${one.run.number}`, role: "img"});
    const table = make("div");
    grid.append(makeFigure(`${one.run.name}: remaining wait, expected (horizontal) and actual (vertical)`, canvas, table));
    return {one, canvas, table};
  });
  /** @type {(told: Errors) => Unsure[]} */
  const medians = (told) => {
    const by = Array.from({length: told.found.times.length}, () => /** @type {number[]} */ ([]));
    told.lines.forEach((line, at) => by[told.found.moment[line]].push(told.errors[at]));
    return by.map((some) => figures.statistic(some, "median"));
  };
  /** @type {Errors[]} */
  let shown = [];
  const behind = makeBehind("As a table", () => timeTable());
  overTime.part.append(behind);
  // Runs of different lengths have different moments; a moment of another run makes no gap in a curve.
  const moments = [...new Set(all.flatMap((one) => Array.from(one.times)))].sort((one, other) => one - other);
  const placeOf = all.map((one) => new Map(Array.from(one.times, (time, at) => [time, at])));
  const timeTable = () => {
    const columns = shown.map(/** @returns {(time: number) => Cell[]} */ (told, number) => {
      const counts = new Array(told.found.times.length).fill(0), values = medians(told), places = placeOf[number];
      for (const line of told.lines) counts[told.found.moment[line]]++;
      return (time) => {
        const at = places.get(time);
        return at === undefined ? ["", ""] : [cellOf(words.whole, counts[at]), cellOf(words.change, values[at])];
      };
    });
    const rows = moments.map((time) => [{show: clock.say(time), value: time}, ...columns.flatMap((column) => column(time))]);
    return makeTable("Median error at each moment", [{title: "Moment", text: true}, ...shown.flatMap((told) => [{title: `${told.run.name}: estimates`}, {title: `${told.run.name}: median error`}])], rows);
  };

  const drawFigures = () => {
    /** @type {(told: Errors, test: (error: number) => boolean) => number | null} */
    const share = (told, test) => (told.errors.length ? told.errors.filter(test).length / told.errors.length : null);
    const rows = shown.map((told) => [told.run.name, cellOf(words.whole, told.found.times.length), cellOf(words.whole, told.errors.length),
      cellOf(words.change, figures.mean(told.errors)), ...ERROR_SHARES.map((at) => cellOf(words.change, figures.quantile(told.sorted, at))),
      cellOf(words.duration, figures.mean(told.errors.map(Math.abs))),
      cellOf(words.percent, share(told, (error) => error < -PUNCTUAL)), cellOf(words.percent, share(told, (error) => error > PUNCTUAL)),
      cellOf(words.whole, told.unknown), cellOf(words.whole, told.open)]);
    const table = makeTable("Errors of estimates", [{title: "Run", text: true}, {title: "Moments"}, {title: "Estimates"}, {title: "Mean error"},
      ...ERROR_SHARES.map((at) => ({title: at === 0.5 ? "Median" : `${100 * at} %`})), {title: "Mean absolute"}, {title: "Earlier"}, {title: "Later"}, {title: "No estimate"}, {title: "Did not start"}], rows, {fixed: true, hideCaption: true});
    table.id = "estimates-figures";
    figuresPart.replaceChildren(table, make("p", {class: "keys"}, "Earlier and later: by more than a minute. No estimate: the job waited for nodes that were down or for a job without a walltime, or would have been rejected."));
  };
  const drawSpread = () => {
    const least = Math.min(-1, ...shown.map((told) => bent(told.sorted[0] ?? 0))), most = Math.max(1, ...shown.map((told) => bent(told.sorted[told.sorted.length - 1] ?? 0)));
    const xs = Array.from({length: POINTS + 1}, (_, at) => least + (at / POINTS) * (most - least));
    const seconds = xs.map((x) => Math.sign(x) * (10 ** Math.abs(x) - 1) * MINUTE + 1e-6);
    const data = [xs, ...shown.map((told) => figures.below(told.sorted, seconds).map((one) => (one == null ? null : 100 * one)))];
    const ticks = ERROR_TICKS.map(bent).filter((tick) => tick >= least && tick <= most);
    if (spread.chart) spread.chart.destroy();
    const unbent = (/** @type {number} */ x) => Math.round(Math.sign(x) * (10 ** Math.abs(x) - 1) * MINUTE);
    spread.chart = chartOf(spread.holder, {data, unit: "%", height: 200, labelX: "Error", sayX: (x) => words.change(unbent(x)), curves: shown.map((told) => ({label: told.run.name, colour: told.run.number})),
      range: () => [least, most], rangeY: () => [0, 100], splits: () => ticks, values: (chart, splits) => splits.map((x) => words.change(unbent(x)))});
    spread.holder.setAttribute("aria-label", `Errors of estimates: ${shown.map((told) => `${told.run.name}: half of them from ${words.change(figures.quantile(told.sorted, 0.25))} to ${words.change(figures.quantile(told.sorted, 0.75))}`).join("; ")}.`);
  };
  const drawTime = () => {
    const data = [moments, ...shown.map((told, number) => {
      const values = medians(told).map((value) => (value == null ? null : value / HOUR));
      return moments.map((time) => values[placeOf[number].get(time) ?? -1]);
    })];
    if (overTime.chart) overTime.chart.destroy();
    const values = data.slice(1).flat().flatMap((value) => value ?? []), low = Math.min(0, ...values), high = Math.max(0, ...values) || 1;
    overTime.chart = chartOf(overTime.holder, {...timeAxis(clock, () => state.whole), data, unit: "h", height: 200, labelX: "Moment",
      curves: shown.map((told) => ({label: told.run.name, colour: told.run.number})), rangeY: () => [1.05 * low, 1.05 * high]});
    overTime.holder.setAttribute("aria-label", `Median error at ${words.whole(moments.length)} moments. ${shown.map((told) => `${told.run.name}: on the whole ${words.change(figures.quantile(told.sorted, 0.5))}`).join("; ")}.`);
    behind.open = false;
  };

  /** A point for each estimate, both axes logarithmic above a minute; the line marks equality. @type {(cloud: typeof clouds[number], number: number) => void} */
  const drawCloud = ({one, canvas, table}, number) => {
    const told = shown[number], wide = canvas.clientWidth || 520, pen = penOn(canvas, wide, CLOUD.height);
    const most = bent(told.lines.reduce((least, line) => Math.max(least, one.expected[line], one.started[line]), HOUR));
    const width = wide - CLOUD.left - CLOUD.right, height = CLOUD.height - CLOUD.top - CLOUD.bottom;
    /** @type {(seconds: number) => number} */
    const x = (seconds) => CLOUD.left + (bent(seconds) / most) * width;
    /** @type {(seconds: number) => number} */
    const y = (seconds) => CLOUD.top + height - (bent(seconds) / most) * height;
    pen.fillStyle = colours.of("plot");
    pen.fillRect(CLOUD.left, CLOUD.top, width, height);
    pen.font = "12px system-ui, sans-serif";
    pen.strokeStyle = colours.of("line");
    for (const tick of TIME_TICKS.filter((at) => at >= MINUTE && bent(at) <= most)) {
      pen.beginPath();
      pen.moveTo(x(tick), CLOUD.top);
      pen.lineTo(x(tick), CLOUD.top + height);
      pen.moveTo(CLOUD.left, y(tick));
      pen.lineTo(CLOUD.left + width, y(tick));
      pen.stroke();
      pen.fillStyle = colours.of("muted");
      pen.textAlign = "center";
      pen.textBaseline = "top";
      pen.fillText(words.duration(tick), x(tick), CLOUD.top + height + 6);
      pen.textAlign = "right";
      pen.textBaseline = "middle";
      pen.fillText(words.duration(tick), CLOUD.left - 6, y(tick));
    }
    pen.fillStyle = colours.of("muted");
    pen.textAlign = "center";
    pen.textBaseline = "top";
    pen.fillText("expected", CLOUD.left + width / 2, CLOUD.top + height + 22);
    pen.globalAlpha = told.lines.length > 2000 ? 0.25 : 0.6;
    pen.fillStyle = colours.series(one.run.number);
    for (const line of told.lines) pen.fillRect(x(one.expected[line]) - 1.5, y(one.started[line]) - 1.5, 3, 3);
    pen.globalAlpha = 1;
    pen.strokeStyle = colours.of("ink");
    pen.beginPath();
    pen.moveTo(CLOUD.left, CLOUD.top + height);
    pen.lineTo(CLOUD.left + width, CLOUD.top);
    pen.stroke();
    const below = told.errors.filter((error) => error < 0).length;
    canvas.setAttribute("aria-label", `${one.run.name}: ${words.whole(told.lines.length)} estimates, expected against actual waits; ${words.whole(below)} started before the expected time. The table below shows them by classes.`);
    let before = -1;
    const rows = EXPECTED.map(([title, bound]) => {
      const some = told.lines.filter((line) => one.expected[line] > before && one.expected[line] <= bound);
      before = bound;
      const error = figures.statistic(some.map((line) => one.started[line] - one.expected[line]), "median"), wait = figures.statistic(some.map((line) => one.started[line]), "median");
      return [title, cellOf(words.whole, some.length), cellOf(words.duration, wait), cellOf(words.change, error)];
    });
    const classes = makeTable(`${one.run.name}: by the expected wait`, [{title: "Expected", text: true}, {title: "Estimates"}, {title: "Median wait"}, {title: "Median error"}], rows, {fixed: true, hideCaption: true});
    classes.classList.add("small");
    table.replaceChildren(classes);
  };

  // -- one moment ----------------------------------------------------------------------------------------------------
  const drawMoment = (/** @type {string} */ choice) => {
    const [number, moment] = choice.split(" ").map(Number), one = all[number], {run} = one;
    /** @type {{expected: number, cells: Cell[]}[]} */
    const rows = [];
    for (let line = 0; line < one.count; line++) {
      const job = one.job[line];
      if (one.moment[line] !== moment || leftOut(run, job)) continue;
      const time = one.times[moment], expected = one.expected[line] < 0 ? null : time + one.expected[line], started = one.started[line] < 0 ? null : time + one.started[line];
      const error = expected === null || started === null ? null : started - expected;
      const id = job < 0 ? "–" : run.id(job);
      rows.push({expected: expected ?? Infinity, cells: [{show: job < 0 ? id : jobLink(id, [run, job]), value: id},
        job < 0 ? "" : run.label("user", run.job.first[job]), cellOf(words.whole, job < 0 ? null : run.job.size[job]),
        {show: expected === null ? "no estimate" : clock.say(expected), value: expected}, {show: started === null ? "did not start" : clock.say(started), value: started}, cellOf(words.change, error)]});
    }
    rows.sort((first, second) => first.expected - second.expected);
    const table = makeTable(`Queued jobs at ${clock.say(one.times[moment])}, ${run.name}`, [{title: "Job", text: true}, {title: "User", text: true}, {title: `${capital(run.unit)}s`}, {title: "Expected"}, {title: "Started"}, {title: "Error"}], rows.map((row) => row.cells), {most: 20});
    table.id = "estimates-then";
    list.replaceChildren(table);
  };
  const choices = all.flatMap((one, number) => {
    const waiting = new Array(one.times.length).fill(0);
    for (const moment of one.moment) waiting[moment]++;
    return Array.from(one.times, (time, moment) => ({key: `${number} ${moment}`, text: `${all.length > 1 ? `${one.run.name}, ` : ""}${clock.say(time)}: ${words.whole(waiting[moment])} waited`, waited: waiting[moment]}));
  });
  let chosen = choices.reduce((one, other) => (other.waited > one.waited ? other : one)).key;
  const field = makeChoice("Queued jobs at", choices.map(({key, text}) => [key, text]), chosen, (value) => {
    chosen = value;
    drawMoment(value);
  }, "estimates-moment");
  section.append(make("div", {class: "bar plain"}, field), list);

  const draw = () => {
    shown = all.map(errorsOf);
    drawFigures();
    drawSpread();
    drawTime();
    clouds.forEach(drawCloud);
    drawMoment(chosen);
  };
  state.onFilter.push(draw);
  draw();
  return draw;
}
