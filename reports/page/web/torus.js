"use strict";
// The network at one moment: which job each node has, slice by slice through the third dimension and those after it.

const GAP = 10;

/** The network of one run on a canvas. */
class Network {
  constructor(state, run, bytes, holder) {
    const make = elements.make, told = run.facts.places;
    this.state = state;
    this.run = run;
    this.shape = [...told.shape, 1, 1];
    this.along = told.place.map((place) => numbersOf(bytes, place));
    this.perRouter = told.per_router;
    this.nodes = this.along[0].length;
    this.slices = told.shape.slice(2).reduce((product, count) => product * count, 1);
    this.moment = 0;
    this.canvas = make("canvas", {class: "network", id: `network-${run.number}`, role: "img"});
    this.tip = make("div", {class: "tip", hidden: true});
    holder.append(make("div", {class: "stage"}, this.canvas, this.tip));
    /** how many nodes of each router came before a node */
    const met = new Map();
    this.seat = Uint16Array.from({length: this.nodes}, (_, node) => {
      const router = this.along.map((column) => column[node]).join(" "), before = met.get(router) || 0;
      met.set(router, before + 1);
      return before;
    });
    this.canvas.addEventListener("pointermove", (event) => this.say(event));
    this.canvas.addEventListener("pointerleave", () => {
      this.tip.hidden = true;
    });
  }

  /** The slice of a node: its place in all dimensions from the third on. */
  sliceOf(node) {
    let slice = 0;
    for (let dimension = 2; dimension < this.along.length; dimension++) slice = slice * this.shape[dimension] + this.along[dimension][node];
    return slice;
  }

  /** How large a router is drawn, and where each slice begins. */
  layout() {
    const wide = this.canvas.clientWidth, [columns, rows] = this.shape;
    let best = {side: 0, across: 1};
    for (let across = 1; across <= this.slices; across++) {
      const side = Math.min(24, ((wide + GAP) / across - GAP) / columns, (720 / Math.ceil(this.slices / across) - GAP - 14) / rows);
      if (side > best.side) best = {side, across};
    }
    const side = Math.max(1, best.side);
    return {side, at: (slice) => [(slice % best.across) * (columns * side + GAP), Math.floor(slice / best.across) * (rows * side + GAP + 14) + 14],
      tall: Math.ceil(this.slices / best.across) * (rows * side + GAP + 14) + 4};
  }

  /** The attempt on each node at a time, one of them where several share it, -1 where there is none; which nodes are down; how many jobs run. */
  look(time) {
    const {run} = this, on = new Int32Array(this.nodes).fill(-1), down = new Uint8Array(this.nodes);
    let jobs = 0;
    run.gantt.raster.between(time, time + 1e-9, (row) => {
      jobs++;
      for (let k = run.firstOf[row]; k < run.firstOf[row + 1]; k++) on.fill(row, run.nodeOf(run.low[k]).node, run.nodeOf(run.high[k]).node + 1);
    });
    const outages = run.failures?.outages;
    for (let i = 0; outages && i < outages.node.length; i++) if (outages.down[i] <= time && time < outages.up[i]) down[outages.node[i]] = 1;
    return {on, down, jobs};
  }

  paint(time) {
    const {canvas, run} = this, ratio = devicePixelRatio || 1, wide = canvas.clientWidth;
    if (!wide) return;
    const {side, at, tall} = this.layout(), {of} = colouring(this.state, run), {on, down, jobs} = this.look(time);
    canvas.width = Math.round(wide * ratio);
    canvas.height = Math.round(tall * ratio);
    canvas.style.height = `${tall}px`;
    const context = canvas.getContext("2d"), idle = colours.of("plot"), failed = colours.of("failure");
    context.scale(ratio, ratio);
    context.font = "11px system-ui, sans-serif";
    context.fillStyle = colours.of("muted");
    for (let slice = 0; this.slices > 1 && slice < this.slices; slice++) context.fillText(this.sliceName(slice), at(slice)[0], at(slice)[1] - 3);
    let busy = 0, out = 0;
    const part = side / this.perRouter, line = side > 4 ? 1 : 0;
    for (let node = 0; node < this.nodes; node++) {
      const [left, above] = at(this.sliceOf(node)), x = left + this.along[0][node] * side + this.seat[node] * part, y = above + (this.along.length > 1 ? this.along[1][node] : 0) * side;
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
    this.drawn = {on, down, time};
    canvas.setAttribute("aria-label", `${run.name}, ${run.clock.say(time)}: ${words.whole(busy)} of ${words.whole(this.nodes)} nodes have ${words.whole(jobs)} jobs, ${words.whole(out)} are out of service`);
    return canvas.getAttribute("aria-label");
  }

  sliceName(slice) {
    const names = ["x", "y", "z", "u", "v", "w"], found = [];
    for (let dimension = this.along.length - 1, rest = slice; dimension >= 2; dimension--) {
      found.unshift(`${names[dimension] || `d${dimension}`} ${rest % this.shape[dimension]}`);
      rest = Math.floor(rest / this.shape[dimension]);
    }
    return found.join(", ");
  }

  say(event) {
    const {run, tip} = this, box = this.canvas.getBoundingClientRect(), x = event.clientX - box.left, y = event.clientY - box.top, {side, at} = this.layout();
    tip.hidden = true;
    for (let node = 0; node < this.nodes; node++) {
      const [left, above] = at(this.sliceOf(node)), column = left + this.along[0][node] * side + (this.seat[node] * side) / this.perRouter, row = above + (this.along.length > 1 ? this.along[1][node] : 0) * side;
      if (x < column || x >= column + side / this.perRouter || y < row || y >= row + side) continue;
      const on = this.drawn.on[node], user = on < 0 ? "" : run.label("user", on);
      tip.textContent = `node ${words.whole(node)} at (${this.along.map((one) => one[node]).join(", ")})${this.drawn.down[node] ? ", out of service" : ""}: `
        + (on < 0 ? "no job" : `${run.id(run.jobOf[on])}${user ? ` of user ${user}` : ""}, ${words.whole(run.size[on])} units`);
      tip.style.left = `${Math.min(x + 12, this.canvas.clientWidth - 240)}px`;
      tip.style.top = `${Math.max(0, y - 40)}px`;
      tip.hidden = false;
      return;
    }
  }
}

function drawNetworks(state, bytes) {
  const runs = state.runs.filter((run) => run.facts.places);
  if (!runs.length) return () => {};
  const make = elements.make, {kind, shape} = runs[0].facts.places;
  const section = elements.section("network", "Network", `Which job each node has at one moment of the time shown above: a ${kind} of ${shape.map(words.whole).join(" × ")} routers, slice by slice, in the machine's colours.`);
  const said = make("output", {class: "said", "aria-live": "polite"});
  const slider = make("input", {type: "range", id: "network-time", min: 0, max: 1000, value: 500, oninput: () => draw()});
  section.append(make("div", {class: "bar plain"}, make("label", {class: "field wide"}, make("span", {}, "Moment"), slider), said));
  const networks = runs.map((run) => {
    const figure = make("figure", {}, make("figcaption", {}, runs.length > 1 ? run.name : run.facts.machine.name));
    section.append(figure);
    return new Network(state, run, bytes, figure);
  });
  const draw = calmly(() => {
    const {from, to} = state.view, time = from + (Number(slider.value) / 1000) * (to - from);
    const labels = networks.map((network) => network.paint(time));
    said.textContent = runs[0].clock.say(time);
    slider.setAttribute("aria-valuetext", labels.join("; "));
  });
  state.onView.push(draw);
  state.onFilter.push(draw);
  state.onColour.push(draw);
  draw();
  return draw;
}
