"use strict";
// Estimates for those who waited: when each was expected to start, at moments over the run, and when it did.

const ERROR_TICKS = [-7 * DAY, -DAY, -6 * HOUR, -HOUR, -10 * MINUTE, 0, 10 * MINUTE, HOUR, 6 * HOUR, DAY, 7 * DAY];
const ERROR_SHARES = [0.05, 0.25, 0.5, 0.75, 0.95];
const EXPECTED = [["at most 10 min", 10 * MINUTE], ["at most 1 h", HOUR], ["at most 6 h", 6 * HOUR], ["at most 1 d", DAY], ["more", Infinity]];
const CLOUD = {height: 300, left: 66, right: 12, top: 8, bottom: 40};
/** Errors within a minute count as none. */
const PUNCTUAL = MINUTE;

/** A length of time with its sign: later is +. */
function errorText(seconds) {
  if (seconds === null || !Number.isFinite(seconds)) return "–";
  return `${seconds > 0 ? "+" : ""}${words.duration(seconds)}`;
}

/** Minutes on an axis that is linear around zero and logarithmic far from it. */
function bent(seconds) {
  return Math.sign(seconds) * Math.log10(1 + Math.abs(seconds) / MINUTE);
}

/** The estimates of a run as columns; null without. */
function readEstimates(run, bytes) {
  const told = run.facts.estimates;
  if (!told) return null;
  const columns = Object.fromEntries(Object.entries(told).map(([name, place]) => [name, numbersOf(bytes, place)]));
  return {run, ...columns, count: columns.job.length};
}

/** What the chosen jobs' estimates come to: lines with an estimate and a start, their errors, and how many have not. */
function errorsOf(found) {
  const {run} = found, lines = [], errors = [];
  let all = 0, unknown = 0, open = 0;
  for (let line = 0; line < found.count; line++) {
    const job = found.job[line];
    if (job < 0 ? run.count < run.jobs : !run.chosen[job]) continue;
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

function drawEstimates(state, bytes) {
  const all = state.runs.map((run) => readEstimates(run, bytes)).filter(Boolean);
  if (!all.length) return () => {};
  const make = elements.make, clock = state.runs[0].clock;
  const section = elements.section("estimates", "Estimates for those who waited",
    "At moments spread over the run: when each job that waited was expected to start, as the policy then stood, if every job took its whole walltime and nothing else came; "
    + "and when it did start. An error is the actual start less the expected one: + is later than expected.");
  const figuresPart = make("div"), grid = make("div", {class: "grid"}), list = make("div");
  section.append(figuresPart, grid);
  const figure = (title, id) => {
    const holder = make("div", {class: "chart", id, role: "img"});
    const part = make("figure", {}, make("figcaption", {}, title), holder);
    grid.append(part);
    return {holder, part, chart: null};
  };
  const spread = figure("Error: share of estimates (%) that are not above", "chart-estimates-errors");
  const overTime = figure("Median error at each moment (h)", "chart-estimates-time");
  const clouds = all.map((one) => {
    const canvas = make("canvas", {class: "cloud", id: `estimates-${one.run.number}`, role: "img"});
    const table = make("div");
    grid.append(make("figure", {}, make("figcaption", {}, `${one.run.name}: wait from the moment on, expected (across) and actual (up)`), canvas, table));
    return {one, canvas, table};
  });
  const medians = (told) => {
    const by = Array.from({length: told.found.times.length}, () => []);
    told.lines.forEach((line, at) => by[told.found.moment[line]].push(told.errors[at]));
    return by.map((some) => figures.statistic(some, "median"));
  };
  let shown = [];
  const behind = elements.behind("As a table", () => timeTable());
  overTime.part.append(behind);
  // Runs of different length have different moments: what is none of a run's own is no gap in its curve.
  const moments = [...new Set(all.flatMap((one) => Array.from(one.times)))].sort((one, other) => one - other);
  const placeOf = all.map((one) => new Map(Array.from(one.times, (time, at) => [time, at])));
  const timeTable = () => {
    const columns = shown.map((told, number) => {
      const counts = new Array(told.found.times.length).fill(0), values = medians(told), places = placeOf[number];
      for (const line of told.lines) counts[told.found.moment[line]]++;
      return (time) => {
        if (!places.has(time)) return ["", ""];
        const at = places.get(time);
        return [{show: words.whole(counts[at]), value: counts[at]}, {show: errorText(values[at]), value: values[at]}];
      };
    });
    const rows = moments.map((time) => [{show: clock.say(time), value: time}, ...columns.flatMap((column) => column(time))]);
    return elements.table("Median error at each moment", [{title: "Moment", text: true}, ...shown.flatMap((told) => [{title: `${told.run.name}: estimates`}, {title: `${told.run.name}: median error`}])], rows);
  };

  const drawFigures = () => {
    const share = (told, test) => (told.errors.length ? told.errors.filter(test).length / told.errors.length : null);
    const time = (value) => ({show: errorText(value), value});
    const part = (value) => ({show: words.percent(value), value});
    const rows = shown.map((told) => [told.run.name, {show: words.whole(told.found.times.length), value: told.found.times.length}, {show: words.whole(told.errors.length), value: told.errors.length},
      time(figures.mean(told.errors)), ...ERROR_SHARES.map((at) => time(figures.quantile(told.sorted, at))),
      {show: words.duration(figures.mean(told.errors.map(Math.abs))), value: figures.mean(told.errors.map(Math.abs))},
      part(share(told, (error) => error < -PUNCTUAL)), part(share(told, (error) => error > PUNCTUAL)),
      {show: words.whole(told.unknown), value: told.unknown}, {show: words.whole(told.open), value: told.open}]);
    const table = elements.table("Errors of estimates", [{title: "Run", text: true}, {title: "Moments"}, {title: "Estimates"}, {title: "Mean error"},
      ...ERROR_SHARES.map((at) => ({title: at === 0.5 ? "Median" : `${100 * at} %`})), {title: "Without sign"}, {title: "Earlier"}, {title: "Later"}, {title: "Nobody could tell"}, {title: "Did not start"}], rows, {fixed: true, hideCaption: true});
    table.id = "estimates-figures";
    figuresPart.replaceChildren(table, make("p", {class: "keys"}, "Earlier and later: by more than a minute. Nobody could tell: it waited for nodes that were down or for a job without a walltime, or would have been rejected."));
  };
  const drawSpread = () => {
    const least = Math.min(-1, ...shown.map((told) => bent(told.sorted[0] ?? 0))), most = Math.max(1, ...shown.map((told) => bent(told.sorted.at(-1) ?? 0)));
    const xs = Array.from({length: POINTS + 1}, (_, at) => least + (at / POINTS) * (most - least));
    const seconds = xs.map((x) => Math.sign(x) * (10 ** Math.abs(x) - 1) * MINUTE + 1e-6);
    const data = [xs, ...shown.map((told) => figures.below(told.sorted, seconds).map((one) => (one === null ? null : 100 * one)))];
    const ticks = ERROR_TICKS.map(bent).filter((tick) => tick >= least && tick <= most);
    if (spread.chart) spread.chart.destroy();
    const unbent = (x) => Math.round(Math.sign(x) * (10 ** Math.abs(x) - 1) * MINUTE);
    spread.chart = chartOf(spread.holder, {data, unit: "%", height: 200, labelX: "Error", sayX: (x) => errorText(unbent(x)), curves: shown.map((told) => ({label: told.run.name, colour: told.run.number})),
      range: () => [least, most], rangeY: () => [0, 100], splits: () => ticks, values: (chart, splits) => splits.map((x) => errorText(unbent(x)))});
    spread.holder.setAttribute("aria-label", `Errors of estimates: ${shown.map((told) => `${told.run.name}: half of them from ${errorText(figures.quantile(told.sorted, 0.25))} to ${errorText(figures.quantile(told.sorted, 0.75))}`).join("; ")}.`);
  };
  const drawTime = () => {
    const data = [moments, ...shown.map((told, number) => {
      const values = medians(told).map((value) => (value === null ? null : value / HOUR));
      return moments.map((time) => values[placeOf[number].get(time)]);
    })];
    if (overTime.chart) overTime.chart.destroy();
    const values = data.slice(1).flat().filter(Number.isFinite), low = Math.min(0, ...values), high = Math.max(0, ...values) || 1;
    overTime.chart = chartOf(overTime.holder, {data, unit: "h", height: 200, labelX: "Moment", sayX: (time) => clock.say(time), curves: shown.map((told) => ({label: told.run.name, colour: told.run.number})),
      range: () => [state.whole.from, state.whole.to], rangeY: () => [1.05 * low, 1.05 * high],
      splits: (chart) => clock.ticks(state.whole.from, state.whole.to, chart.width / 90).at,
      values: (chart, splits) => splits.map(clock.ticks(state.whole.from, state.whole.to, chart.width / 90).label)});
    overTime.holder.setAttribute("aria-label", `Median error at ${words.whole(moments.length)} moments. ${shown.map((told) => `${told.run.name}: on the whole ${errorText(figures.quantile(told.sorted, 0.5))}`).join("; ")}.`);
    behind.open = false;
  };

  /** A point for each estimate, both axes logarithmic from a minute on; a line where both are the same. */
  const drawCloud = ({one, canvas, table}) => {
    const told = shown.find((other) => other.found === one), ratio = devicePixelRatio || 1, wide = canvas.clientWidth || 520;
    canvas.width = Math.round(wide * ratio);
    canvas.height = Math.round(CLOUD.height * ratio);
    const pen = canvas.getContext("2d");
    pen.scale(ratio, ratio);
    const most = bent(told.lines.reduce((least, line) => Math.max(least, one.expected[line], one.started[line]), HOUR));
    const width = wide - CLOUD.left - CLOUD.right, height = CLOUD.height - CLOUD.top - CLOUD.bottom;
    const x = (seconds) => CLOUD.left + (bent(seconds) / most) * width, y = (seconds) => CLOUD.top + height - (bent(seconds) / most) * height;
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
    canvas.setAttribute("aria-label", `${one.run.name}: ${words.whole(told.lines.length)} estimates, expected against actual waits; ${words.whole(below)} started before the expected time. The table below says the same by classes.`);
    let before = -1;
    const rows = EXPECTED.map(([title, bound]) => {
      const some = told.lines.filter((line) => one.expected[line] > before && one.expected[line] <= bound);
      before = bound;
      const value = (list) => figures.statistic(list, "median");
      const error = value(some.map((line) => one.started[line] - one.expected[line])), wait = value(some.map((line) => one.started[line]));
      return [title, {show: words.whole(some.length), value: some.length}, {show: words.duration(wait), value: wait}, {show: errorText(error), value: error}];
    });
    const classes = elements.table(`${one.run.name}: by the expected wait`, [{title: "Expected", text: true}, {title: "Estimates"}, {title: "Median wait"}, {title: "Median error"}], rows, {fixed: true, hideCaption: true});
    classes.classList.add("small");
    table.replaceChildren(classes);
  };

  // -- one moment ----------------------------------------------------------------------------------------------------
  const drawMoment = (choice) => {
    const [number, moment] = choice.split(" ").map(Number), one = all[number], {run} = one, rows = [];
    for (let line = 0; line < one.count; line++) {
      const job = one.job[line];
      if (one.moment[line] !== moment || (job < 0 ? run.count < run.jobs : !run.chosen[job])) continue;
      const time = one.times[moment], expected = one.expected[line] < 0 ? null : time + one.expected[line], started = one.started[line] < 0 ? null : time + one.started[line];
      const error = expected === null || started === null ? null : started - expected;
      const id = job < 0 ? "–" : run.id(job);
      const show = job < 0 ? id : make("button", {type: "button", class: "link", title: "Show it on the machine", onclick: () => {
        run.gantt.find(job);
        document.getElementById("machine").scrollIntoView();
      }}, id);
      rows.push([{show, value: id}, job < 0 ? "" : run.label("user", run.job.first[job]), {show: job < 0 ? "–" : words.whole(run.job.size[job]), value: job < 0 ? null : run.job.size[job]},
        {show: expected === null ? "nobody could tell" : clock.say(expected), value: expected}, {show: started === null ? "did not start" : clock.say(started), value: started}, {show: errorText(error), value: error}]);
    }
    rows.sort((first, second) => (first[3].value ?? Infinity) - (second[3].value ?? Infinity));
    const table = elements.table(`Who waited at ${clock.say(one.times[moment])}, ${run.name}`, [{title: "Job", text: true}, {title: "User", text: true}, {title: "Units"}, {title: "Expected"}, {title: "Started"}, {title: "Error"}], rows, {most: 20});
    table.id = "estimates-then";
    list.replaceChildren(table);
  };
  const choices = all.flatMap((one, number) => {
    const waiting = new Array(one.times.length).fill(0);
    for (const moment of one.moment) waiting[moment]++;
    return Array.from(one.times, (time, moment) => [`${number} ${moment}`, `${all.length > 1 ? `${one.run.name}, ` : ""}${clock.say(time)}: ${words.whole(waiting[moment])} waited`, waiting[moment]]);
  });
  let chosen = choices.reduce((one, other) => (other[2] > one[2] ? other : one))[0];
  const field = elements.choice("Who waited at", choices, chosen, (value) => {
    chosen = value;
    drawMoment(value);
  });
  field.querySelector("select").id = "estimates-moment";
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
