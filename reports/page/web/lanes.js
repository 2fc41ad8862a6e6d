// The rows of a machine's chart. On shared nodes, each job is a lane inside the row of its node, as high as its share.

/** Amounts closer than this are equal. */
const CLOSE = 1e-9;
/** Times of the page have six decimals, so a job may seem to start this long before its predecessor ends (s). */
const ROUNDING = 2e-6;

/** What attempts take of each node of a machine with resources. */
export class Takes {
  /** @param {(place: Place) => Float64Array} at @param {TakesFacts} told */
  constructor(at, told) {
    /** Lines of each attempt: firstLine[row] to firstLine[row + 1]; intervals of a line: firstOf[line] to firstOf[line + 1]. */
    this.firstLine = behind(at(told.lines));
    this.firstOf = behind(at(told.intervals));
    this.low = Uint32Array.from(at(told.first));
    this.high = Uint32Array.from(at(told.length), (more, k) => this.low[k] + more);
    this.resources = told.resources.map(({name, has}, column) => {
      const each = at(has);
      return /** @type {Resource} */ ({name, has: each, total: each.reduce((sum, one) => sum + one, 0), of: at(told.amounts[column])});
    });
    this.cores = at(told.cores);
  }

  /** @type {(name: string) => Resource | undefined} */
  resource(name) {
    return this.resources.find((one) => one.name === name);
  }

  /** What an attempt takes of a resource, of all its nodes together. @type {(resource: Resource, row: number) => number} */
  amount(resource, row) {
    let sum = 0;
    for (let line = this.firstLine[row]; line < this.firstLine[row + 1]; line++) {
      for (let k = this.firstOf[line]; k < this.firstOf[line + 1]; k++) sum += resource.of[line] * (this.high[k] - this.low[k] + 1);
    }
    return sum;
  }
}

/** The first index of each group, and the end of the last group, from the groups' lengths. @type {(counts: Float64Array) => Uint32Array} */
function behind(counts) {
  const found = new Uint32Array(counts.length + 1);
  for (let i = 0; i < counts.length; i++) found[i + 1] = found[i] + counts[i];
  return found;
}

/** The areas of a machine without shared nodes: the units of each attempt. @type {(run: Run) => Lanes} */
export function unitLanes(run) {
  return {firstOf: run.firstOf, low: run.low, top: run.high.map((unit) => unit + 1), bottom: 0, above: run.units};
}

/**
 * The areas of shared nodes for one resource. Node n is the row from n to n + 1; a job's height on it is the share of the
 * node's amount that the job takes. An attempt keeps its place until it ends: the lowest that is free, in several parts
 * if no gap is large enough. Attempts that take nothing of the resource have no area.
 * @type {(run: Run, takes: Takes, resource: Resource) => Lanes}
 */
export function nodeLanes(run, takes, resource) {
  const {has, of} = resource, {start, end} = run;
  const holders = [...has.keys()].filter((node) => has[node] > 0);
  /** the free parts of each node, ascending: begin, end, begin, end, ... @type {number[][]} */
  const free = Array.from(has, (amount) => [0, amount]);
  const rows = [...start.keys()].filter((row) => takes.firstLine[row + 1] > takes.firstLine[row]);
  const byStart = [...rows].sort((one, other) => start[one] - start[other]), byEnd = rows.sort((one, other) => end[one] - end[other]);
  /** of each attempt: node, begin, end, node, begin, end, ... @type {(number[] | null)[]} */
  const placed = new Array(run.rows).fill(null);
  /** @type {(row: number) => void} */
  const release = (row) => {
    const parts = placed[row] ?? [];
    for (let i = 0; i < parts.length; i += 3) giveBack(free[parts[i]], parts[i + 1], parts[i + 2]);
  };
  let next = 0;
  for (const row of byStart) {
    for (; next < byEnd.length && end[byEnd[next]] <= start[row] + ROUNDING; next++) release(byEnd[next]);
    const parts = placed[row] = /** @type {number[]} */ ([]);
    for (let line = takes.firstLine[row]; line < takes.firstLine[row + 1]; line++) {
      if (of[line] <= 0) continue;
      for (let k = takes.firstOf[line]; k < takes.firstOf[line + 1]; k++) {
        for (let node = takes.low[k]; node <= takes.high[k]; node++) take(free[node], of[line], (low, top) => parts.push(node, low, top));
      }
    }
    if (end[row] <= start[row] + ROUNDING) release(row);  // the loop above has passed it, or will find nothing
  }
  const firstOf = new Uint32Array(run.rows + 1);
  /** @type {number[]} */
  const low = [], top = [];
  for (let row = 0; row < run.rows; row++) {
    const parts = placed[row] ?? [];
    for (let i = 0; i < parts.length; i += 3) {
      const node = parts[i], from = node + parts[i + 1] / has[node], to = node + parts[i + 2] / has[node];
      if (low.length > firstOf[row] && Math.abs(top[top.length - 1] - from) < CLOSE) top[top.length - 1] = to;  // a job on many whole nodes
      else {
        low.push(from);
        top.push(to);
      }
    }
    firstOf[row + 1] = low.length;
  }
  return {firstOf, low: Float64Array.from(low), top: Float64Array.from(top), bottom: holders[0] ?? 0, above: (holders[holders.length - 1] ?? run.units - 1) + 1};
}

/** Take an amount from the free parts of a node. @type {(free: number[], amount: number, use: (low: number, top: number) => void) => void} */
function take(free, amount, use) {
  let at = 0;
  while (at < free.length && free[at + 1] - free[at] < amount - CLOSE) at += 2;
  for (let left = at < free.length ? amount : Math.min(amount, sizeOf(free)); left > CLOSE;) {
    if (at >= free.length) at = 0;  // no gap is large enough: fill the lowest ones
    const part = Math.min(left, free[at + 1] - free[at]);
    use(free[at], free[at] + part);
    free[at] += part;
    left -= part;
    if (free[at + 1] - free[at] <= CLOSE) free.splice(at, 2);
  }
}

/** @type {(free: number[]) => number} */
function sizeOf(free) {
  let sum = 0;
  for (let i = 0; i < free.length; i += 2) sum += free[i + 1] - free[i];
  return sum;
}

/** Return a part to the free parts of a node. @type {(free: number[], low: number, top: number) => void} */
function giveBack(free, low, top) {
  let at = 0;
  while (at < free.length && free[at] < low) at += 2;
  free.splice(at, 0, low, top);
  if (at + 2 < free.length && free[at + 2] - free[at + 1] <= CLOSE) free.splice(at + 1, 2);
  if (at > 0 && free[at] - free[at - 1] <= CLOSE) free.splice(at - 1, 2);
}
