"use strict";
// What has been so far, since the run began to be looked at: one curve a canvas, with its values as a table behind it.

/** A curve over simulated time. */
class LiveCurve {
  constructor(title, column, show, holder, least) {
    const make = elements.make;
    this.title = title;
    this.column = column;
    this.show = show;
    /** the highest value of the axis, at least */
    this.least = least;
    this.canvas = make("canvas", {class: "curve", role: "img"});
    this.caption = make("figcaption", {}, title);
    this.past = [[], [], [], []];
    holder.append(make("figure", {}, this.caption, this.canvas, elements.behind("Values", () => this.table())));
  }

  table() {
    const [times] = this.past, values = this.past[this.column], step = Math.max(1, Math.ceil(times.length / 40)), rows = [];
    for (let at = 0; at < times.length; at += step) rows.push([clock.say(times[at]), this.show(values[at])]);
    return elements.table(this.title, [{title: "Time", text: true}, {title: this.title}], rows, {hideCaption: true, fixed: true});
  }

  paint(past) {
    this.past = past.length ? past : this.past;
    const [times] = this.past, values = this.past[this.column];
    if (!times.length) return;
    const ratio = devicePixelRatio || 1, wide = this.canvas.clientWidth, tall = this.canvas.clientHeight;
    this.canvas.width = Math.round(wide * ratio);
    this.canvas.height = Math.round(tall * ratio);
    const pen = this.canvas.getContext("2d");
    pen.scale(ratio, ratio);
    const begin = times[0], span = times.at(-1) - begin || 1, most = Math.max(this.least, ...values);
    pen.strokeStyle = colours.of("accent");
    pen.lineWidth = 1.5;
    pen.beginPath();
    times.forEach((time, at) => {
      const x = ((time - begin) / span) * wide, y = tall - 2 - (values[at] / (most || 1)) * (tall - 6);
      if (at) pen.lineTo(x, y);
      else pen.moveTo(x, y);
    });
    pen.stroke();
    const now = this.show(values.at(-1));
    this.caption.textContent = `${this.title}: ${now}`;
    this.canvas.setAttribute("aria-label", `${this.title} from ${clock.say(begin)} to ${clock.say(times.at(-1))}: ${now} now, ${this.show(Math.max(...values))} at most`);
  }
}
