// Canvases: drawing contexts, tooltips, and slices side by side.
import {make} from "./elements.js";

/** gap between slices (pixels) */
export const GAP = 10;

/** Set a canvas to device resolution; return its context, scaled to CSS pixels. @type {(canvas: HTMLCanvasElement, wide: number, tall: number) => CanvasRenderingContext2D} */
export function penOn(canvas, wide, tall) {
  const ratio = devicePixelRatio || 1, pen = canvas.getContext("2d");
  if (!pen) throw new Error("the browser has no canvas");
  canvas.width = Math.round(wide * ratio);
  canvas.height = Math.round(tall * ratio);
  pen.scale(ratio, ratio);
  return pen;
}

/** A canvas with a tooltip for the point under the pointer. */
export class Stage {
  /** @param {Element} holder @param {Record<string, any>} properties */
  constructor(holder, properties) {
    this.canvas = make("canvas", {role: "img", ...properties});
    this.tip = make("div", {class: "tip", hidden: true});
    holder.append(make("div", {class: "stage"}, this.canvas, this.tip));
    this.canvas.addEventListener("pointerleave", () => this.tell(null));
  }

  /** Show a tooltip at a point, at least `room` wide; null hides it. @type {(text: string | null, x?: number, y?: number, room?: number) => void} */
  tell(text, x = 0, y = 0, room = 240) {
    this.tip.hidden = text === null;
    this.tip.textContent = text;
    this.tip.style.left = `${Math.max(0, Math.min(x + 12, this.canvas.clientWidth - room))}px`;
    this.tip.style.top = `${Math.max(0, y)}px`;
  }
}

/**
 * Arrange `count` equal slices of squares, each below a heading of `head` pixels, with the largest squares that fit.
 * Return the side of a square, the position of each slice, and the total height including the last gap.
 * @type {(count: number, columns: number, rows: number, room: {wide: number, tall: number, most: number}, head?: number) => {side: number, at: (slice: number) => [number, number], tall: number}}
 */
export function slicesIn(count, columns, rows, room, head = 0) {
  let best = {side: 0, across: 1};
  for (let across = 1; across <= count; across++) {
    const side = Math.min(room.most, ((room.wide + GAP) / across - GAP) / columns, (room.tall / Math.ceil(count / across) - GAP - head) / rows);
    if (side > best.side) best = {side, across};
  }
  const {across} = best, side = Math.max(1, best.side), high = rows * side + GAP + head;
  return {side, at: (slice) => [(slice % across) * (columns * side + GAP), Math.floor(slice / across) * high + head], tall: Math.ceil(count / across) * high};
}
