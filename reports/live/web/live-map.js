"use strict";
// The machine at this moment: a square a node, in rows as its network has them, or one after another.

const FREE = -1, DOWN = -2, MAP_GAP = 10;

/** The nodes of a machine on a canvas, with what is told of the one under the pointer. */
class LiveMap {
  constructor(facts, holder) {
    const make = elements.make;
    this.facts = facts;
    this.canvas = make("canvas", {class: "map", id: "map", role: "img"});
    this.tip = make("div", {class: "tip", hidden: true});
    holder.append(make("div", {class: "stage"}, this.canvas, this.tip));
    this.canvas.addEventListener("pointermove", (event) => this.say(event));
    this.canvas.addEventListener("pointerleave", () => {
      this.tip.hidden = true;
    });
    this.state = null;
  }

  /** Where each cell stands: its column and row in cells, in the largest squares that there is room for. */
  layout(count) {
    const wide = Math.max(60, this.canvas.clientWidth), {blocks} = this.facts;
    if (blocks.length) {
      const rows = blocks[0].length, columns = blocks[0][0].length;
      let best = {side: 0, across: 1};
      for (let across = 1; across <= blocks.length; across++) {
        const down = Math.ceil(blocks.length / across);
        const side = Math.min(18, ((wide + MAP_GAP) / across - MAP_GAP) / columns, (620 / down - MAP_GAP) / rows);
        if (side > best.side) best = {side, across};
      }
      const side = Math.max(1, best.side), down = Math.ceil(blocks.length / best.across);
      const at = [];
      blocks.forEach((block, number) => {
        const left = (number % best.across) * (columns * side + MAP_GAP), top = Math.floor(number / best.across) * (rows * side + MAP_GAP);
        block.forEach((row, y) => row.forEach((node, x) => {
          if (node >= 0) at[node] = [left + x * side, top + y * side];
        }));
      });
      return {side, at, tall: down * (rows * side + MAP_GAP) - MAP_GAP};
    }
    const fitting = (side) => {
      const columns = Math.max(1, Math.floor(wide / side));
      return columns > 20 ? columns - (columns % 10) : columns;
    };
    let side = 18;
    while (side > 2 && Math.ceil(count / fitting(side)) * side > 420) side--;
    const columns = fitting(side), at = [];
    for (let cell = 0; cell < count; cell++) at.push([(cell % columns) * side, Math.floor(cell / columns) * side]);
    return {side, at, tall: Math.ceil(count / columns) * side};
  }

  /** Draw a state of the run. */
  paint(state) {
    this.state = state;
    const {map} = state, what = [], used = [];
    map.lengths.forEach((length, place) => {
      for (let left = length; left > 0; left--) {
        what.push(map.what[place]);
        used.push(map.used[place]);
      }
    });
    Object.assign(this, {what, used});
    const ratio = devicePixelRatio || 1;
    this.places = this.layout(what.length);
    const {side, at, tall} = this.places;
    this.canvas.style.height = `${tall}px`;
    this.canvas.width = Math.round(this.canvas.clientWidth * ratio);
    this.canvas.height = Math.round(tall * ratio);
    const pen = this.canvas.getContext("2d"), gap = side >= 4 ? 1 : 0;
    pen.scale(ratio, ratio);
    const free = colours.of("panel"), failure = colours.of("failure"), series = [0, 1, 2, 3, 4, 5, 6, 7].map(colours.series);
    what.forEach((one, cell) => {
      if (!at[cell]) return;
      const [x, y] = at[cell], size = Math.max(1, side - gap);
      pen.fillStyle = free;
      pen.fillRect(x, y, size, size);
      if (one === DOWN) {
        pen.strokeStyle = failure;
        pen.lineWidth = Math.max(1, side / 9);
        pen.beginPath();
        pen.moveTo(x, y);
        pen.lineTo(x + size, y + size);
        pen.moveTo(x + size, y);
        pen.lineTo(x, y + size);
        pen.stroke();
      } else if (one >= 0) {
        pen.fillStyle = series[(state.colours[one] ?? one) % 8];
        const high = Math.max(1, (size * used[cell]) / 100);
        pen.fillRect(x, y + size - high, size, high);
      }
    });
    const busy = what.filter((one) => one >= 0).length, down = what.filter((one) => one === DOWN).length;
    this.canvas.setAttribute("aria-label",
      `${words.whole(what.length * map.each)} nodes: ${words.whole(busy * map.each)} with jobs, ${words.whole(down * map.each)} down, ${words.whole((what.length - busy - down) * map.each)} free`);
  }

  /** Tell what is under the pointer. */
  say(event) {
    if (!this.places) return;
    const {side, at} = this.places;
    const cell = at.findIndex((place) => place && event.offsetX >= place[0] && event.offsetX < place[0] + side && event.offsetY >= place[1] && event.offsetY < place[1] + side);
    this.tip.hidden = cell < 0;
    if (cell < 0) return;
    this.tip.textContent = this.about(cell);
    this.tip.style.left = `${Math.min(event.offsetX + 12, Math.max(0, this.canvas.clientWidth - 320))}px`;
    this.tip.style.top = `${event.offsetY + 14}px`;
  }

  /** What is known of a cell, as a sentence. */
  about(cell) {
    const {each} = this.state.map, one = this.what[cell];
    const name = each > 1 ? `Nodes ${cell * each} to ${Math.min((cell + 1) * each, this.facts.nodes) - 1}` : `Node ${cell}`;
    if (one === DOWN) return `${name}: down`;
    if (one === FREE) return `${name}: free`;
    const job = this.state.on_machine[one];
    if (!job) return `${name}: a job`;
    const [id, size, since, walltime, user] = job;
    const limit = walltime === null ? "" : ` of ${words.brief(walltime)}`;
    return `${name}: job ${id}, ${words.whole(size)} units, for ${words.brief(this.state.now - since)}${limit}${user ? `, ${user}` : ""}`;
  }
}
