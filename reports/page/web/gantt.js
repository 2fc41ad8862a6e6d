// The machine over time: where and when each job ran, down to seconds and units.
import {colours} from "./colours.js";
import {penOn, Stage} from "./drawing.js";
import {addSection, byId, capital, make, makeChoice, makeFigure, twice} from "./elements.js";
import {figures} from "./figures.js";
import {Raster} from "./raster.js";
import {calmly, LABELS} from "./state.js";
import {words} from "./words.js";

const MARGIN = {left: 58, right: 12, top: 4, bottom: 26};
const HEIGHT = 360;
const SPECIAL = /** @type {[string, string][]} */ ([["size", "size"], ["state", "final state"], ["wait", "wait"]]);

/**
 * The colour of each row, and the legend.
 * @type {(state: State, run: Run) => {of: (row: number) => Colour, legend: [Colour, string][], unit: string}}
 */
export function colouring(state, run) {
  const {colour} = state;
  const grey = colours.rgb(colours.of("others")), faint = colours.rgb(colours.of("faint"));
  /** @type {(paint: (row: number) => Colour) => (row: number) => Colour} */
  const chosen = (paint) => (row) => (run.chosen[run.jobOf[row]] ? paint(row) : faint);
  if (colour === "size" || colour === "wait") {
    const sizes = colour === "size";
    const most = Math.log(sizes ? Math.max(2, run.amount) : 1 + run.job.wait.reduce((one, other) => Math.max(one, other), 60));
    /** @type {(row: number) => number} */
    const share = (row) => Math.log(sizes ? Math.max(1, run.size[row]) : 1 + Math.max(0, run.job.wait[run.jobOf[row]])) / most;
    const table = Array.from({length: 65}, (_, at) => colours.scale(at / 64));
    const stops = [0, 0.25, 0.5, 0.75, 1].map((at) => /** @type {[Colour, string]} */ ([colours.scale(at), sizes ? words.whole(Math.exp(at * most)) : words.duration(Math.exp(at * most) - 1)]));
    return {of: chosen((row) => table[Math.round(64 * Math.min(1, share(row)))]), legend: stops, unit: sizes ? `${run.unit}s` : "wait"};
  }
  const column = colour === "state" ? run.state : run.labels[colour];
  if (!column) return {of: chosen(() => grey), legend: [[grey, "unknown"]], unit: colour};
  const sorted = rankedNames(state);
  const named = sorted.slice(0, sorted.length > 8 ? 7 : 8);
  const palette = column.names.map((name) => (named.includes(name) ? colours.rgb(colours.series(named.indexOf(name))) : grey));
  const legend = named.map((name, at) => /** @type {[Colour, string]} */ ([colours.rgb(colours.series(at)), colour === "state" ? words.state(name) : name || "unknown"]));
  if (sorted.length > named.length) legend.push([grey, `${sorted.length - named.length} others`]);
  return {of: chosen((row) => palette[column.of[row]]), legend, unit: colour};
}

/** Clip to the machine's part of the canvas until the context is restored. @type {(context: CanvasRenderingContext2D, scale: Gantt["scale"]) => void} */
function clip(context, scale) {
  context.save();
  context.beginPath();
  context.rect(MARGIN.left, MARGIN.top, scale.width, scale.height);
  context.clip();
}

/** The names by which jobs are coloured, sorted by the work of their jobs; calculated once. @type {(state: State) => string[]} */
function rankedNames(state) {
  const known = state.ranked.get(state.colour);
  if (known) return known;
  const held = new Map();
  for (const run of state.runs) {
    const column = state.colour === "state" ? run.state : run.labels[state.colour];
    if (!column) continue;
    const sums = new Float64Array(column.names.length);
    for (let row = 0; row < run.rows; row++) sums[column.of[row]] += run.held[row] * run.execution[row];
    column.names.forEach((name, at) => held.set(name, (held.get(name) || 0) + sums[at]));
  }
  const sorted = [...held].filter((one) => one[1] > 0).sort((one, other) => other[1] - one[1]).map((one) => one[0]);
  state.ranked.set(state.colour, sorted);
  return sorted;
}

/** A link that shows jobs on the machine, one per run. @type {(text: string, ...jobs: [Run, number][]) => HTMLElement} */
export function jobLink(text, ...jobs) {
  return make("button", {type: "button", class: "link", title: "Show it on the machine", onclick: () => {
    for (const [run, job] of jobs) run.gantt?.find(job);
    byId("machine").scrollIntoView();
  }}, text);
}

/** One run's machine on a canvas. */
export class Gantt extends Stage {
  /** @param {State} state @param {Run} run @param {Element} holder */
  constructor(state, run, holder) {
    super(holder, {class: "gantt", id: `gantt-${run.number}`, tabIndex: 0, "aria-describedby": "gantt-keys"});
    this.state = state;
    this.run = run;
    this.lanes = run.lanes(state.resource);
    this.raster = new Raster(run, this.lanes);
    this.units = {bottom: this.lanes.bottom, top: this.lanes.above};
    this.selected = -1;
    this.detail = make("div", {class: "detail", "aria-live": "polite"});
    holder.append(this.detail);
    this.draw = calmly(() => this.paint());
    this.listen();
  }

  /** The scale: positions of times and units on the canvas. */
  get scale() {
    const {from, to} = this.state.view, {bottom, top} = this.units;
    const width = this.canvas.clientWidth - MARGIN.left - MARGIN.right, height = HEIGHT - MARGIN.top - MARGIN.bottom;
    return {from, to, bottom, top, width, height,
      x: (/** @type {number} */ time) => MARGIN.left + ((time - from) / (to - from)) * width,
      y: (/** @type {number} */ unit) => MARGIN.top + ((unit - bottom) / (top - bottom)) * height,
      time: (/** @type {number} */ x) => from + ((x - MARGIN.left) / width) * (to - from),
      unit: (/** @type {number} */ y) => bottom + ((y - MARGIN.top) / height) * (top - bottom)};
  }

  paint() {
    const {canvas, run} = this, ratio = devicePixelRatio || 1;
    const wide = canvas.clientWidth;
    if (!wide) return;
    canvas.style.height = `${HEIGHT}px`;
    const context = penOn(canvas, wide, HEIGHT), scale = this.scale;
    const image = context.createImageData(Math.max(1, Math.round(scale.width * ratio)), Math.round(scale.height * ratio));
    const how = colouring(this.state, run);
    this.raster.paint(image, scale, how.of, colours.rgb(colours.of("plot")));
    context.putImageData(image, Math.round(MARGIN.left * ratio), Math.round(MARGIN.top * ratio));
    this.hatch(context, scale);
    this.divide(context, scale);
    this.mark(context, scale);
    this.axes(context, scale);
    const {from, to} = this.state.view;
    canvas.setAttribute("aria-label", `${run.name}: ${words.count(run.units, run.takes ? "node" : "unit")} over time, from ${run.clock.say(from)} to ${run.clock.say(to)}, coloured by ${how.unit}`);
  }

  /** Nodes that were out of service: hatched one way after failures, the other way in maintenance. @type {(context: CanvasRenderingContext2D, scale: Gantt["scale"]) => void} */
  hatch(context, scale) {
    const outages = this.run.failures?.outages;
    if (!outages) return;
    clip(context, scale);
    const patterns = [0, 1].map((planned) => {
      const tile = make("canvas", {width: 6, height: 6}), pen = /** @type {CanvasRenderingContext2D} */ (tile.getContext("2d"));
      pen.fillStyle = colours.of("down-paper");
      pen.fillRect(0, 0, 6, 6);
      pen.strokeStyle = colours.of(planned ? "maintenance" : "failure");
      pen.lineWidth = 1.5;
      for (const shift of [-6, 0, 6]) {
        pen.moveTo(shift, planned ? 0 : 6);
        pen.lineTo(shift + 6, planned ? 6 : 0);
      }
      pen.stroke();
      return context.createPattern(tile, "repeat") ?? "";
    });
    for (let i = 0; i < outages.node.length; i++) {
      if (outages.up[i] < scale.from || outages.down[i] > scale.to) continue;
      const [low, high] = this.run.unitsOf(outages.node[i]);
      const left = scale.x(outages.down[i]), above = scale.y(low);
      context.fillStyle = patterns[outages.planned[i] ? 1 : 0];
      context.fillRect(left, above, Math.max(1, scale.x(outages.up[i]) - left), Math.max(1, scale.y(high + 1) - above));
    }
    context.restore();
  }

  /** Lines between shared nodes, if there is room for them. @type {(context: CanvasRenderingContext2D, scale: Gantt["scale"]) => void} */
  divide(context, scale) {
    if (!this.run.takes || scale.height / (scale.top - scale.bottom) < 14) return;
    clip(context, scale);
    context.fillStyle = colours.of("muted");
    for (let node = Math.ceil(scale.bottom); node < scale.top; node++) context.fillRect(MARGIN.left, Math.round(scale.y(node)) - 0.5, scale.width, 1);
    context.restore();
  }

  /** A frame around the selected job. @type {(context: CanvasRenderingContext2D, scale: Gantt["scale"]) => void} */
  mark(context, scale) {
    const {run, lanes, selected} = this;
    if (selected < 0) return;
    clip(context, scale);
    context.strokeStyle = colours.of("ink");
    context.lineWidth = 2;
    for (let row = run.job.first[run.jobOf[selected]]; row <= run.job.last[run.jobOf[selected]]; row++) {
      const left = scale.x(run.start[row]), right = scale.x(run.end[row]);
      for (let k = lanes.firstOf[row]; k < lanes.firstOf[row + 1]; k++) {
        context.strokeRect(left - 1, scale.y(lanes.low[k]) - 1, Math.max(2, right - left) + 1, Math.max(2, scale.y(lanes.top[k]) - scale.y(lanes.low[k])) + 1);
      }
    }
    context.restore();
  }

  /** @type {(context: CanvasRenderingContext2D, scale: Gantt["scale"]) => void} */
  axes(context, scale) {
    const {clock} = this.run;
    context.font = "12px system-ui, sans-serif";
    context.fillStyle = colours.of("muted");
    context.strokeStyle = colours.of("line");
    context.lineWidth = 1;
    context.strokeRect(MARGIN.left - 0.5, MARGIN.top - 0.5, scale.width + 1, scale.height + 1);
    context.textAlign = "center";
    context.textBaseline = "top";
    const ticks = clock.ticks(scale.from, scale.to, scale.width / 90);
    for (const time of ticks.at) {
      const x = Math.round(scale.x(time)) + 0.5;
      context.beginPath();
      context.moveTo(x, MARGIN.top + scale.height);
      context.lineTo(x, MARGIN.top + scale.height + 4);
      context.stroke();
      context.fillText(ticks.label(time), x, MARGIN.top + scale.height + 8);
    }
    context.textAlign = "right";
    context.textBaseline = "middle";
    const span = scale.top - scale.bottom, power = 10 ** Math.floor(Math.log10(Math.max(1, span / 4)));
    const step = [1, 2, 5, 10].map((one) => one * power).find((one) => span / one <= 6) ?? 10 * power;
    for (let unit = Math.ceil(scale.bottom / step) * step; unit < scale.top; unit += step) {
      const y = Math.round(scale.y(unit)) + 0.5;
      context.beginPath();
      context.moveTo(MARGIN.left - 4, y);
      context.lineTo(MARGIN.left, y);
      context.stroke();
      context.fillText(words.whole(unit), MARGIN.left - 7, Math.max(y, MARGIN.top + 6));
    }
  }

  listen() {
    const {canvas, state} = this;
    /** @type {(event: MouseEvent) => {x: number, y: number}} */
    const place = (event) => {
      const box = canvas.getBoundingClientRect();
      return {x: event.clientX - box.left, y: event.clientY - box.top};
    };
    canvas.addEventListener("wheel", (event) => {
      if (!(event.ctrlKey || event.metaKey || document.activeElement === canvas)) return;  // else the page scrolls
      event.preventDefault();
      const {x, y} = place(event), factor = 1.25 ** Math.sign(event.deltaY);
      if (event.shiftKey) this.zoomUnits(factor, this.scale.unit(y));
      else state.zoom(factor, this.scale.time(x));
    }, {passive: false});
    /** @type {{x: number, y: number, view: State["view"], units: Gantt["units"], moved: boolean} | null} */
    let held = null;
    canvas.addEventListener("pointerdown", (event) => {
      held = {...place(event), view: {...state.view}, units: {...this.units}, moved: false};
      canvas.setPointerCapture(event.pointerId);
      this.tell(null);
    });
    canvas.addEventListener("pointermove", (event) => {
      const {x, y} = place(event);
      if (!held) {
        this.say(x, y);
        return;
      }
      if (Math.abs(x - held.x) + Math.abs(y - held.y) > 3) held.moved = true;
      if (!held.moved) return;
      const scale = this.scale, by = ((held.x - x) / scale.width) * (held.view.to - held.view.from);
      this.moveUnits(held.units.bottom + ((held.y - y) / scale.height) * (held.units.top - held.units.bottom));
      state.setView(held.view.from + by, held.view.to + by);
    });
    canvas.addEventListener("pointerup", (event) => {
      const {x, y} = place(event);
      if (held && !held.moved) this.select(this.under(x, y));
      held = null;
    });
    canvas.addEventListener("dblclick", () => this.whole());
    canvas.addEventListener("keydown", (event) => {
      /** @type {Record<string, () => void>} */
      const keys = {
        ArrowLeft: () => state.pan(-0.2), ArrowRight: () => state.pan(0.2), "+": () => state.zoom(0.5), "=": () => state.zoom(0.5), "-": () => state.zoom(2),
        ArrowUp: () => this.moveUnits(this.units.bottom - (this.units.top - this.units.bottom) / 5),
        ArrowDown: () => this.moveUnits(this.units.bottom + (this.units.top - this.units.bottom) / 5),
        "[": () => this.zoomUnits(2), "]": () => this.zoomUnits(0.5), Home: () => this.whole(), n: () => this.step(1), p: () => this.step(-1),
        Enter: () => this.select(this.under(canvas.clientWidth / 2, HEIGHT / 2)), Escape: () => this.select(-1),
      };
      const known = keys[event.key];
      if (!known || event.ctrlKey || event.metaKey || event.altKey) return;
      event.preventDefault();
      known();
    });
  }

  /** Show another resource of the nodes. */
  change() {
    const {bottom, above} = this.lanes, all = this.units.bottom === bottom && this.units.top === above;
    this.lanes = this.run.lanes(this.state.resource);
    this.raster = new Raster(this.run, this.lanes);
    if (all) this.units = {bottom: this.lanes.bottom, top: this.lanes.above};
    this.draw();
  }

  whole() {
    this.units = {bottom: this.lanes.bottom, top: this.lanes.above};
    this.state.setView(this.state.whole.from, this.state.whole.to);
  }

  /** @type {(factor: number, around?: number) => void} */
  zoomUnits(factor, around = (this.units.bottom + this.units.top) / 2) {
    const {bottom, top} = this.units;
    const tall = Math.min(this.run.units, Math.max(this.run.takes ? 1 : 4, (top - bottom) * factor));
    this.units = {bottom, top: bottom + tall};
    this.moveUnits(around - ((around - bottom) / (top - bottom)) * tall);
  }

  /** @type {(bottom: number) => void} */
  moveUnits(bottom) {
    const tall = this.units.top - this.units.bottom;
    const low = Math.min(Math.max(0, bottom), this.run.units - tall);
    this.units = {bottom: low, top: low + tall};
    this.draw();
  }

  /** Whether a point is on the machine. @type {(x: number, y: number) => boolean} */
  inside(x, y) {
    const scale = this.scale;
    return x >= MARGIN.left && x <= MARGIN.left + scale.width && y >= MARGIN.top && y <= MARGIN.top + scale.height;
  }

  /** The row at a point, -1 without one. @type {(x: number, y: number) => number} */
  under(x, y) {
    const scale = this.scale;
    return !this.inside(x, y) ? -1 : this.raster.at(scale.time(x), scale.unit(y));
  }

  /** Show what is at a point. @type {(x: number, y: number) => void} */
  say(x, y) {
    if (!this.inside(x, y)) return this.tell(null);
    const {run} = this, scale = this.scale, row = this.under(x, y);
    const unit = Math.min(run.units - 1, Math.max(0, Math.floor(scale.unit(y)))), {node, pool} = run.nodeOf(unit);
    this.tell(`${run.clock.say(scale.time(x))}, node ${words.whole(node)}${run.facts.machine.pools.length > 1 ? ` of ${pool}` : ""}${this.heldOn(node, scale.time(x))}: `
      + (row < 0 ? "no job" : `${run.about(row)}, waited ${words.duration(run.job.wait[run.jobOf[row]])}`), x, y - 40);
  }

  /** How much of the resource shown jobs hold on a shared node. @type {(node: number, time: number) => string} */
  heldOn(node, time) {
    const {run, state} = this, shown = run.takes?.resource(state.resource) ?? run.takes?.resource("cores");
    if (!shown) return "";
    const {firstOf, low, top} = this.lanes;
    let share = 0;
    this.raster.between(time, time + 1e-9, (row) => {
      for (let k = firstOf[row]; k < firstOf[row + 1]; k++) share += Math.max(0, Math.min(top[k], node + 1) - Math.max(low[k], node));
    });
    return ` (${words.partOf(shown.name, share * shown.has[node])} of ${words.amount(shown.name, shown.has[node])} held)`;
  }

  /** Select the next or previous job by start time. @type {(by: number) => void} */
  step(by) {
    const {order} = this.raster;
    const now = order.indexOf(this.selected);
    const at = now < 0 ? figures.firstFrom(this.raster.starts, this.state.view.from) : now + by;
    if (at < 0 || at >= order.length) return;
    this.select(order[at]);
    const begin = this.run.start[order[at]], {from, to} = this.state.view;
    if (begin < from || begin > to) this.state.setView(begin - (to - from) / 2, begin + (to - from) / 2);
  }

  /** Select a job and show its details. @type {(row: number) => void} */
  select(row) {
    const {run, detail} = this;
    this.selected = row;
    this.draw();
    detail.replaceChildren();
    if (row < 0) return;
    const job = run.jobOf[row];
    const facts = [["Job", run.id(job)], ...LABELS.filter((label) => run.label(label, row)).map((label) => [capital(label), run.label(label, row)]),
      run.takes ? ["Takes", run.holding(row)] : ["Units", words.whole(run.size[row])], ["Submitted", run.clock.say(run.job.submit[job])], ["Started", run.clock.say(run.start[row])],
      ["Ended", run.clock.say(run.end[row])], ["Ran", words.duration(run.execution[row])],
      ["Walltime", run.walltime[row] < 0 ? "none" : words.duration(run.walltime[row])], ["Waited", words.duration(run.job.wait[job])],
      ["Bounded slowdown", words.figure(run.job.bounded[job])], ["Final state", words.state(run.stateOf(row))],
      ["Why", run.why(row)], ["Metadata", run.metadata(row)]].filter((one) => one[1] !== "");
    detail.append(make("dl", {class: "facts"}, facts.map(([name, text]) => make("div", {}, make("dt", {}, name), make("dd", {}, text)))));
  }

  /** Show a job with some time around it; the row of its last attempt, -1 without one. @type {(job: number) => void} */
  find(job) {
    const {run} = this;
    if (job < 0) return;
    const row = run.job.last[job], length = Math.max(60, run.end[row] - run.job.submit[job]);
    this.units = {bottom: this.lanes.bottom, top: this.lanes.above};
    this.select(row);
    this.state.setView(run.job.submit[job] - length * 0.3, run.end[row] + length * 0.3);
  }
}

/** @param {State} state */
export function drawGantt(state) {
  const shared = [...new Set(state.runs.flatMap((run) => run.takes?.resources.map((one) => one.name) ?? []))];
  const section = addSection("machine", "Machine",
    `Where and when each job ran. Drag to move, use Ctrl and the wheel to zoom (with Shift: the ${shared.length ? "nodes" : "units"}), click a job for details.`
    + (shared.length ? " Jobs on one node are lanes of its row; a lane is as high as the job's share of the node." : ""));
  const labels = LABELS.filter((label) => state.runs.some((run) => run.labels[label]));
  const legend = make("div", {class: "legend", "aria-label": "Colours"});
  const said = make("output", {class: "said"});
  const wanted = make("input", {id: "gantt-job", size: 12, placeholder: "id", onchange: () => find()});
  const find = () => {
    const found = gantts.filter((gantt) => gantt.run.find(wanted.value.trim()) >= 0);
    said.textContent = found.length || !wanted.value ? "" : "no such job";
    for (const gantt of found) gantt.find(gantt.run.find(wanted.value.trim()));
  };
  const colour = makeChoice("Colour by", [...labels.map(twice), ...SPECIAL], state.colour, (value) => state.setColour(value), "gantt-colour");
  /** @type {(text: string, title: string, work: () => void) => HTMLElement} */
  const button = (text, title, work) => make("button", {type: "button", title, "aria-label": title, onclick: work}, text);
  const heights = shared.length ? makeChoice("Height by", shared.map((name) => [name, words.resource(name)]), state.resource, (value) => {
    state.resource = value;
    for (const gantt of gantts) gantt.change();
    entitle();
  }, "gantt-resource") : null;
  section.append(make("div", {class: "bar plain"}, colour, heights, button("◀", "Earlier", () => state.pan(-0.25)), button("▶", "Later", () => state.pan(0.25)),
    button("+", "Zoom in", () => state.zoom(0.5)), button("−", "Zoom out", () => state.zoom(2)),
    button("Whole time", "Show the whole time", () => gantts.forEach((gantt) => gantt.whole())),
    make("label", {class: "field"}, make("span", {}, "Job"), wanted), said));
  section.append(make("p", {class: "hidden", id: "gantt-keys"},
    "Arrow keys move, plus and minus zoom the time, brackets zoom the rows, Home shows all, Enter selects the job in the middle, n and p select the next and the previous job."));
  const gantts = state.runs.map((run) => {
    const figure = makeFigure("");
    section.append(figure);
    return new Gantt(state, run, figure);
  });
  const entitle = () => {
    for (const {run, canvas} of gantts) {
      const caption = canvas.closest("figure")?.querySelector("figcaption"), rows = run.takes ? "nodes" : "units";
      const shown = run.takes?.resource(state.resource) ?? run.takes?.resource("cores");
      if (caption) caption.textContent = `${state.runs.length > 1 ? `${run.name}: ${rows}` : capital(rows)} of ${run.facts.machine.name} over time`
        + (shown ? `; height of a job: its share of the node's ${words.resource(shown.name)}` : "");
    }
  };
  entitle();
  section.append(legend, make("p", {class: "keys"}, "Keys, when the machine has the focus: arrows, + and −, [ and ], Home, Enter, n and p."));
  const draw = () => gantts.forEach((gantt) => gantt.draw());
  const explainColours = () => {
    const {legend: entries, unit} = colouring(state, state.runs[0]);
    const failing = state.runs.some((run) => run.failures?.outages);
    legend.replaceChildren(make("span", {class: "of"}, `${unit}:`), ...entries.map(([rgb, text]) => {
      const sample = make("i", {class: "sample"});
      sample.style.background = `rgb(${rgb.join(" ")})`;
      return make("span", {}, sample, text);
    }), ...(failing ? [make("span", {}, make("i", {class: "sample failed"}), "failed"), make("span", {}, make("i", {class: "sample planned"}), "maintenance")] : []));
  };
  state.onView.push(draw);
  state.onFilter.push(draw);
  state.onColour.push(draw, explainColours);
  explainColours();
  draw();
  for (const gantt of gantts) gantt.run.gantt = gantt;
  return () => {
    explainColours();
    draw();
  };
}
