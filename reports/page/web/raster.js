// Draw jobs as areas of time and units. Each pixel mixes the colours of its jobs by their share of its area, at every
// zoom level, so no job is left out.
import {figures} from "./figures.js";

export class Raster {
  /** @param {Run} run @param {Lanes} lanes */
  constructor(run, lanes) {
    this.run = run;
    this.lanes = lanes;
    const {start, end} = run;
    const ran = [];
    for (let row = 0; row < run.rows; row++) if (lanes.firstOf[row + 1] > lanes.firstOf[row]) ran.push(row);
    /** rows by start, and the latest end in each block of rows, to skip whole blocks */
    this.order = Uint32Array.from(ran).sort((one, other) => start[one] - start[other]);
    this.block = 256;
    this.latest = new Float64Array(Math.ceil(this.order.length / this.block));
    this.order.forEach((row, at) => {
      const block = Math.floor(at / this.block);
      this.latest[block] = Math.max(this.latest[block], end[row]);
    });
    this.starts = Float64Array.from(this.order, (row) => start[row]);
  }

  /** Call `work(row)` for each attempt that runs between two times. @type {(from: number, to: number, work: (row: number) => void) => void} */
  between(from, to, work) {
    const behind = figures.firstFrom(this.starts, to);
    for (let at = 0; at < behind; ) {
      const block = Math.floor(at / this.block), next = Math.min(behind, (block + 1) * this.block);
      if (this.latest[block] > from) {
        for (; at < next; at++) if (this.run.end[this.order[at]] > from) work(this.order[at]);
      }
      at = next;
    }
  }

  /** The attempt at a time on a position of the rows, such as unit 3.5; -1 without one. @type {(time: number, unit: number) => number} */
  at(time, unit) {
    let found = -1;
    const {firstOf, low, top} = this.lanes;
    this.between(time, time + 1e-9, (row) => {
      for (let k = firstOf[row]; k < firstOf[row + 1]; k++) if (low[k] <= unit && unit < top[k]) found = row;
    });
    return found;
  }

  /**
   * Fill an image with the jobs between two times on the rows from `bottom` up to, not including, `top`. `colour(row)`
   * is the colour of an attempt, `paper` the background.
   * @type {(image: ImageData, place: {from: number, to: number, bottom: number, top: number}, colour: (row: number) => Colour, paper: Colour) => void}
   */
  paint(image, {from, to, bottom, top}, colour, paper) {
    const {width, height, data} = image, {run, lanes} = this;
    const mix = new Float32Array(width * height * 4);
    const perSecond = width / (to - from), perUnit = height / (top - bottom);
    this.between(from, to, (row) => {
      let left = (run.start[row] - from) * perSecond, right = (run.end[row] - from) * perSecond;
      if (right - left > 4) right -= 1;  // jobs that follow each other can be told apart
      left = Math.max(left, 0);
      right = Math.min(right, width);
      if (right <= left) return;
      const [red, green, blue] = colour(row);
      const firstX = Math.floor(left), lastX = Math.min(width - 1, Math.ceil(right) - 1);
      for (let k = lanes.firstOf[row]; k < lanes.firstOf[row + 1]; k++) {
        let above = (lanes.low[k] - bottom) * perUnit, below = (lanes.top[k] - bottom) * perUnit;
        if (below - above > 5) below -= 1;
        above = Math.max(above, 0);
        below = Math.min(below, height);
        if (below <= above) continue;
        const lastY = Math.min(height - 1, Math.ceil(below) - 1);
        for (let y = Math.floor(above); y <= lastY; y++) {
          const tall = Math.min(below, y + 1) - Math.max(above, y);
          let place = 4 * (y * width + firstX);
          for (let x = firstX; x <= lastX; x++, place += 4) {
            const part = tall * (Math.min(right, x + 1) - Math.max(left, x));
            mix[place] += part * red;
            mix[place + 1] += part * green;
            mix[place + 2] += part * blue;
            mix[place + 3] += part;
          }
        }
      }
    });
    for (let place = 0; place < mix.length; place += 4) {
      const part = mix[place + 3], rest = Math.max(0, 1 - part), over = Math.max(1, part);
      data[place] = mix[place] / over + rest * paper[0];
      data[place + 1] = mix[place + 1] / over + rest * paper[1];
      data[place + 2] = mix[place + 2] / over + rest * paper[2];
      data[place + 3] = 255;
    }
  }
}
