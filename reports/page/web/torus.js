// The network at one moment: the job on each node, in slices along the third and later dimensions.
import {colours} from "./colours.js";
import {numbersOf} from "./data.js";
import {penOn, slicesIn, Stage} from "./drawing.js";
import {addSection, make, makeFigure} from "./elements.js";
import {colouring} from "./gantt.js";
import {calmly} from "./state.js";
import {words} from "./words.js";

/** The network of one run on a canvas. */
class Network extends Stage {
  /** @param {State} state @param {Run} run @param {NonNullable<RunFacts["places"]>} told @param {Uint8Array} bytes @param {Element} holder */
  constructor(state, run, told, bytes, holder) {
    super(holder, {class: "network", id: `network-${run.number}`});
    this.state = state;
    this.run = run;
    this.shape = [...told.shape, 1, 1];
    this.along = told.place.map((place) => numbersOf(bytes, place));
    this.perRouter = told.per_router;
    this.nodes = this.along[0].length;
    this.slices = told.shape.slice(2).reduce((product, count) => product * count, 1);
    this.drawn = {on: new Int32Array(this.nodes).fill(-1), down: new Uint8Array(this.nodes)};
    /** position of each node within its router */
    const met = new Map();
    this.seat = Uint16Array.from({length: this.nodes}, (_, node) => {
      const router = this.along.map((column) => column[node]).join(" "), before = met.get(router) || 0;
      met.set(router, before + 1);
      return before;
    });
    this.canvas.addEventListener("pointermove", (event) => this.say(event));
  }

  /** The slice of a node, from its coordinates in the third and later dimensions. @type {(node: number) => number} */
  sliceOf(node) {
    let slice = 0;
    for (let dimension = 2; dimension < this.along.length; dimension++) slice = slice * this.shape[dimension] + this.along[dimension][node];
    return slice;
  }

  /** The size of a router, and the position of each slice. */
  layout() {
    return slicesIn(this.slices, this.shape[0], this.shape[1], {wide: this.canvas.clientWidth, tall: 720, most: 24}, 14);
  }

  /** The position and width of a node. @type {(node: number, layout: ReturnType<Network["layout"]>) => {x: number, y: number, part: number}} */
  placeOf(node, {side, at}) {
    const [left, above] = at(this.sliceOf(node)), part = side / this.perRouter;
    return {x: left + this.along[0][node] * side + this.seat[node] * part, y: above + (this.along.length > 1 ? this.along[1][node] : 0) * side, part};
  }

  /** The attempt on each node at a time (one of those that share it, -1 without one), which nodes are down, and the number of running jobs. @param {number} time */
  look(time) {
    const {run} = this, on = new Int32Array(this.nodes).fill(-1), down = new Uint8Array(this.nodes);
    let jobs = 0;
    run.gantt?.raster.between(time, time + 1e-9, (row) => {
      jobs++;
      for (let k = run.firstOf[row]; k < run.firstOf[row + 1]; k++) on.fill(row, run.nodeOf(run.low[k]).node, run.nodeOf(run.high[k]).node + 1);
    });
    const outages = run.failures?.outages;
    for (let i = 0; outages && i < outages.node.length; i++) if (outages.down[i] <= time && time < outages.up[i]) down[outages.node[i]] = 1;
    return {on, down, jobs};
  }

  /** Draw the network at a time; return a description. @type {(time: number) => string} */
  paint(time) {
    const {canvas, run} = this, wide = canvas.clientWidth;
    if (!wide) return "";
    const layout = this.layout(), {side, at} = layout, {of} = colouring(this.state, run), {on, down, jobs} = this.look(time);
    canvas.style.height = `${layout.tall + 4}px`;
    const context = penOn(canvas, wide, layout.tall + 4), idle = colours.of("plot"), failed = colours.of("failure");
    context.font = "11px system-ui, sans-serif";
    context.fillStyle = colours.of("muted");
    for (let slice = 0; this.slices > 1 && slice < this.slices; slice++) context.fillText(this.sliceName(slice), at(slice)[0], at(slice)[1] - 3);
    let busy = 0, out = 0;
    const line = side > 4 ? 1 : 0;
    for (let node = 0; node < this.nodes; node++) {
      const {x, y, part} = this.placeOf(node, layout);
      if (on[node] >= 0) busy++;
      context.fillStyle = on[node] >= 0 ? `rgb(${of(on[node]).join(" ")})` : idle;
      context.fillRect(x, y, Math.max(0.5, part - (this.seat[node] === this.perRouter - 1 ? line : 0)), side - line);
      if (!down[node]) continue;
      out++;
      context.strokeStyle = failed;
      context.beginPath();
      context.moveTo(x, y);
      context.lineTo(x + part, y + side - line);
      context.stroke();
    }
    this.drawn = {on, down};
    const text = `${run.name}, ${run.clock.say(time)}: ${words.whole(busy)} of ${words.whole(this.nodes)} nodes have ${words.whole(jobs)} jobs, ${words.whole(out)} are out of service`;
    canvas.setAttribute("aria-label", text);
    return text;
  }

  /** @type {(slice: number) => string} */
  sliceName(slice) {
    const names = ["x", "y", "z", "u", "v", "w"], found = [];
    for (let dimension = this.along.length - 1, rest = slice; dimension >= 2; dimension--) {
      found.unshift(`${names[dimension] || `d${dimension}`} ${rest % this.shape[dimension]}`);
      rest = Math.floor(rest / this.shape[dimension]);
    }
    return found.join(", ");
  }

  /** Show what is at a point. @type {(event: MouseEvent) => void} */
  say(event) {
    const box = this.canvas.getBoundingClientRect(), x = event.clientX - box.left, y = event.clientY - box.top, layout = this.layout();
    this.tell(null);
    for (let node = 0; node < this.nodes; node++) {
      const place = this.placeOf(node, layout);
      if (x < place.x || x >= place.x + place.part || y < place.y || y >= place.y + layout.side) continue;
      const on = this.drawn.on[node];
      this.tell(`node ${words.whole(node)} at (${this.along.map((one) => one[node]).join(", ")})${this.drawn.down[node] ? ", out of service" : ""}: `
        + (on < 0 ? "no job" : this.run.about(on)), x, y - 40);
      return;
    }
  }
}

/** @type {(state: State, bytes: Uint8Array) => () => void} */
export function drawNetworks(state, bytes) {
  const found = state.runs.flatMap((run) => (run.facts.places ? [{run, places: run.facts.places}] : []));
  if (!found.length) return () => {};
  const {kind, shape} = found[0].places;
  const section = addSection("network", "Network", `The job on each node at one moment of the time shown above: a ${kind} of ${shape.map((one) => words.whole(one)).join(" × ")} routers, slice by slice, in the machine's colours.`);
  const said = make("output", {class: "said", "aria-live": "polite"});
  const slider = make("input", {type: "range", id: "network-time", min: 0, max: 1000, value: 500, oninput: () => draw()});
  section.append(make("div", {class: "bar plain"}, make("label", {class: "field wide"}, make("span", {}, "Moment"), slider), said));
  const networks = found.map(({run, places}) => {
    const figure = makeFigure(found.length > 1 ? run.name : run.facts.machine.name);
    section.append(figure);
    return new Network(state, run, places, bytes, figure);
  });
  const draw = calmly(() => {
    const {from, to} = state.view, time = from + (Number(slider.value) / 1000) * (to - from);
    const labels = networks.map((network) => network.paint(time));
    said.textContent = found[0].run.clock.say(time);
    slider.setAttribute("aria-valuetext", labels.join("; "));
  });
  state.onView.push(draw);
  state.onFilter.push(draw);
  state.onColour.push(draw);
  draw();
  return draw;
}
