// Canvases: a pen on one, what is told of the point under the pointer, slices side by side.
import {make} from "./elements.js";

/** between slices (pixels) */
export const GAP = 10;

/** Make a canvas as large as its pixels and return its pen, whose unit is that of CSS. @type {(canvas: HTMLCanvasElement, wide: number, tall: number) => CanvasRenderingContext2D} */
export function penOn(canvas, wide, tall) {
  const ratio = devicePixelRatio || 1, pen = canvas.getContext("2d");
  if (!pen) throw new Error("the browser has no canvas");
  canvas.width = Math.round(wide * ratio);
  canvas.height = Math.round(tall * ratio);
  pen.scale(ratio, ratio);
  return pen;
}

/** A canvas that tells of what is under the pointer, in a box beside it. */
export class Stage {
  /** @param {Element} holder @param {Record<string, any>} properties */
  constructor(holder, properties) {
    this.canvas = make("canvas", {role: "img", ...properties});
    this.tip = make("div", {class: "tip", hidden: true});
    holder.append(make("div", {class: "stage"}, this.canvas, this.tip));
    this.canvas.addEventListener("pointerleave", () => this.tell(null));
  }

  /** Say something at a point, `room` wide at least; null: nothing. @type {(text: string | null, x?: number, y?: number, room?: number) => void} */
  tell(text, x = 0, y = 0, room = 240) {
    this.tip.hidden = text === null;
    this.tip.textContent = text;
    this.tip.style.left = `${Math.max(0, Math.min(x + 12, this.canvas.clientWidth - room))}px`;
    this.tip.style.top = `${Math.max(0, y)}px`;
  }
}

/**
 * Set out `count` equal slices of rows and columns in the largest squares that there is room for, each below a heading
 * of `head` pixels: how large a square is, where a slice begins, how tall all are with the gap below the last.
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
