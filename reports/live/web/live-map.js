// The machine now: a square per node, in the rows of its network or in order of number.
import {colours} from "../../page/web/colours.js";
import {GAP, penOn, slicesIn, Stage} from "../../page/web/drawing.js";
import {words} from "../../page/web/words.js";

const FREE = -1, DOWN = -2;

/** The nodes of a machine on a canvas, with a tooltip. */
export class LiveMap extends Stage {
  /** @param {LiveFacts} facts @param {Element} holder */
  constructor(facts, holder) {
    super(holder, {class: "map", id: "map"});
    this.facts = facts;
    this.canvas.addEventListener("pointermove", (event) => this.say(event));
    /** @type {LiveState | null} the state drawn: the content and position of each cell */
    this.state = null;
    /** @type {number[]} */
    this.what = [];
    this.places = this.layout(0);
  }

  /** The column and row of each cell, with the largest squares that fit. @type {(count: number) => {side: number, at: [number, number][], tall: number}} */
  layout(count) {
    const wide = Math.max(60, this.canvas.clientWidth), {blocks} = this.facts;
    /** @type {[number, number][]} */
    const at = [];
    if (blocks.length) {
      const slices = slicesIn(blocks.length, blocks[0][0].length, blocks[0].length, {wide, tall: 620, most: 18}), {side} = slices;
      blocks.forEach((block, number) => {
        const [left, top] = slices.at(number);
        block.forEach((row, y) => row.forEach((node, x) => {
          if (node >= 0) at[node] = [left + x * side, top + y * side];
        }));
      });
      return {side, at, tall: slices.tall - GAP};
    }
    const fitting = (/** @type {number} */ side) => {
      const columns = Math.max(1, Math.floor(wide / side));
      return columns > 20 ? columns - (columns % 10) : columns;
    };
    let side = 18;
    while (side > 2 && Math.ceil(count / fitting(side)) * side > 420) side--;
    const columns = fitting(side);
    for (let cell = 0; cell < count; cell++) at.push([(cell % columns) * side, Math.floor(cell / columns) * side]);
    return {side, at, tall: Math.ceil(count / columns) * side};
  }

  /** Draw a state of the run. @param {LiveState} state */
  paint(state) {
    this.state = state;
    const {map} = state;
    /** @type {number[]} */
    const what = [];
    /** @type {number[]} */
    const used = [];
    map.lengths.forEach((length, place) => {
      for (let left = length; left > 0; left--) {
        what.push(map.what[place]);
        used.push(map.used[place]);
      }
    });
    this.what = what;
    this.places = this.layout(what.length);
    const {side, at, tall} = this.places;
    this.canvas.style.height = `${tall}px`;
    const pen = penOn(this.canvas, this.canvas.clientWidth, tall), gap = side >= 4 ? 1 : 0;
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

  /** Show what is under the pointer. @param {MouseEvent} event */
  say(event) {
    const {side, at} = this.places;
    const cell = at.findIndex((place) => place && event.offsetX >= place[0] && event.offsetX < place[0] + side && event.offsetY >= place[1] && event.offsetY < place[1] + side);
    this.tell(cell < 0 || !this.state ? null : this.about(cell, this.state), event.offsetX, event.offsetY + 14, 320);
  }

  /** The description of a cell. @type {(cell: number, state: LiveState) => string} */
  about(cell, state) {
    const {each} = state.map, one = this.what[cell];
    const name = each > 1 ? `Nodes ${cell * each} to ${Math.min((cell + 1) * each, this.facts.nodes) - 1}` : `Node ${cell}`;
    if (one === DOWN) return `${name}: down`;
    if (one === FREE) return `${name}: free`;
    const job = state.on_machine[one];
    if (!job) return `${name}: a job`;
    const [id, size, since, walltime, user] = job;
    const limit = walltime === null ? "" : ` of ${words.brief(walltime)}`;
    return `${name}: job ${id}, ${words.count(size, this.facts.shared.length ? "node" : "unit")}, for ${words.brief(state.now - since)}${limit}${user ? `, ${user}` : ""}`;
  }
}
