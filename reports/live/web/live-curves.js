// Curves since the run began, one per canvas, each with its values as a table.
import {colours} from "../../page/web/colours.js";
import {penOn} from "../../page/web/drawing.js";
import {make, makeBehind, makeTable} from "../../page/web/elements.js";

/** A curve over simulated time. */
export class LiveCurve {
  /**
   * @param {string} title
   * @param {number} column
   * @param {(value: number) => string} show
   * @param {Element} holder
   * @param {number} least
   * @param {Clock} clock
   */
  constructor(title, column, show, holder, least, clock) {
    this.title = title;
    this.column = column;
    this.show = show;
    /** lower limit of the axis's maximum */
    this.least = least;
    this.canvas = make("canvas", {class: "curve", role: "img"});
    this.caption = make("figcaption", {}, title);
    this.clock = clock;
    /** @type {number[][]} */
    this.past = Array.from({length: column + 1}, () => []);
    holder.append(make("figure", {}, this.caption, this.canvas, makeBehind("Values", () => this.table())));
  }

  table() {
    const [times] = this.past, values = this.past[this.column], step = Math.max(1, Math.ceil(times.length / 40));
    const rows = times.map((time, at) => [this.clock.say(time), this.show(values[at])]).filter((_, at) => at % step === 0);
    return makeTable(this.title, [{title: "Time", text: true}, {title: this.title}], rows, {hideCaption: true, fixed: true});
  }

  /** @param {number[][]} past */
  paint(past) {
    this.past = past.length ? past : this.past;
    const [times] = this.past, values = this.past[this.column];
    if (!times.length) return;
    const wide = this.canvas.clientWidth, tall = this.canvas.clientHeight, pen = penOn(this.canvas, wide, tall);
    const begin = times[0], end = times[times.length - 1], span = end - begin || 1, most = Math.max(this.least, ...values);
    pen.strokeStyle = colours.of("accent");
    pen.lineWidth = 1.5;
    pen.beginPath();
    times.forEach((time, at) => {
      const x = ((time - begin) / span) * wide, y = tall - 2 - (values[at] / (most || 1)) * (tall - 6);
      if (at) pen.lineTo(x, y);
      else pen.moveTo(x, y);
    });
    pen.stroke();
    const now = this.show(values[values.length - 1]);
    this.caption.textContent = `${this.title}: ${now}`;
    this.canvas.setAttribute("aria-label", `${this.title} from ${this.clock.say(begin)} to ${this.clock.say(end)}: ${now} now, ${this.show(Math.max(...values))} at most`);
  }
}
