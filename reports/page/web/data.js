// The runs of the page: packed columns (reports/page/packing.py writes them) as typed arrays.
import {byId, readFacts} from "./elements.js";
import {nodeLanes, Takes, unitLanes} from "./lanes.js";
import {Clock, words} from "./words.js";

/** The bytes of the page's block of columns. @type {(text: string) => Promise<Uint8Array>} */
async function unpacked(text) {
  const characters = atob(text);
  const bytes = new Uint8Array(characters.length);
  for (let i = 0; i < bytes.length; i++) bytes[i] = characters.charCodeAt(i);
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate-raw"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

/** A column of numbers. @type {(bytes: Uint8Array, place: Place) => Float64Array} */
export function numbersOf(bytes, place) {
  const {at, n, width, scale} = place, found = new Float64Array(n);
  if (width <= 3) {  // bits of a whole number of 32
    const second = width > 1 ? n : 0, third = width > 2 ? 2 * n : 0;
    for (let i = 0; i < n; i++) {
      const folded = bytes[at + i] | (second && bytes[at + second + i] << 8) | (third && bytes[at + third + i] << 16);
      found[i] = (folded >>> 1) ^ -(folded & 1);
    }
  } else {
    for (let i = 0; i < n; i++) {
      let folded = 0;
      for (let plane = width - 1; plane >= 0; plane--) folded = folded * 256 + bytes[at + plane * n + i];
      found[i] = folded % 2 ? -(folded + 1) / 2 : folded / 2;
    }
  }
  if (place.deltas) for (let i = 1; i < n; i++) found[i] += found[i - 1];
  if (scale !== 1) for (let i = 0; i < n; i++) found[i] /= scale;
  return found;
}

/** A column of names: the distinct names, and each row's index among them. @type {(bytes: Uint8Array, place: NamesPlace) => Names} */
function namesOf(bytes, place) {
  return {names: place.names, of: Uint32Array.from(numbersOf(bytes, place.of))};
}

/** A function that gives the text of a row. @type {(bytes: Uint8Array, place: TextsPlace) => (row: number) => string} */
function textsOf(bytes, place) {
  const shapes = namesOf(bytes, place.shapes);
  const numbers = numbersOf(bytes, place.numbers);
  const pieces = shapes.names.map((name) => (numbers.length ? name.split("\0") : [name]));
  const begins = new Uint32Array(shapes.of.length + 1);
  for (let i = 0; i < shapes.of.length; i++) begins[i + 1] = begins[i] + pieces[shapes.of[i]].length - 1;
  return (row) => pieces[shapes.of[row]].map((piece, i) => (i ? numbers[begins[row] + i - 1] : "") + piece).join("");
}

/** The sums of two columns. @type {(one: Float64Array, other: Float64Array) => Float64Array} */
function added(one, other) {
  const found = new Float64Array(one.length);
  for (let i = 0; i < one.length; i++) found[i] = one[i] + other[i];
  return found;
}

/** Failures, and the use of each attempt's unit time. @param {Uint8Array} bytes @param {Breakdowns} told */
function readFailures(bytes, told) {
  /** @type {(places: Record<string, any> | null | undefined) => Record<string, any> | null} */
  const columns = (places) => places ? Object.fromEntries(Object.entries(places).map(([name, place]) => [name, "of" in place ? namesOf(bytes, place) : numbersOf(bytes, place)])) : null;
  return {outages: columns(told.outages), nodes: columns(told.nodes), attempts: columns(told.attempts)};
}

/** @typedef {(place: Place) => Float64Array} Reader */

/** A run: its attempts (rows) and its jobs as columns; times in seconds since time 0. */
export class Run {
  /** @param {Uint8Array} bytes @param {RunFacts} facts @param {number} number */
  constructor(bytes, facts, number) {
    const columns = facts.columns;
    /** @type {Reader} */
    const at = (place) => numbersOf(bytes, place);
    this.facts = facts;
    this.name = facts.name;
    this.number = number;
    this.clock = new Clock(facts.epoch, facts.timezone);
    /** rows of the machine's chart: units, or nodes if jobs share nodes */
    this.units = facts.machine.units;
    /** what attempts take of shared nodes; null on a machine whose nodes have no resources */
    this.takes = facts.takes && new Takes(at, facts.takes);
    /** jobs are measured in these, and the machine has so many of them */
    this.unit = this.takes ? "core" : "unit";
    this.amount = this.takes?.resource("cores")?.total ?? this.units;
    this.rows = columns.rows;
    this.submit = at(columns.submit);
    const waits = at(columns.wait);
    this.execution = at(columns.execution);
    this.start = added(this.submit, waits);
    this.end = added(this.start, this.execution);
    this.size = at(columns.size);
    this.walltime = at(columns.walltime);
    this.state = namesOf(bytes, columns.state);
    this.why = textsOf(bytes, columns.why);
    this.metadata = textsOf(bytes, columns.metadata);
    /** @type {Record<string, Names | undefined>} */
    this.labels = Object.fromEntries(Object.entries(columns.labels).map(([name, place]) => [name, namesOf(bytes, place)]));
    /** Units of each row: low[k] to high[k] for firstOf[row] <= k < firstOf[row + 1]. */
    this.firstOf = new Uint32Array(this.rows + 1);
    const counts = at(columns.intervals);
    for (let row = 0; row < this.rows; row++) this.firstOf[row + 1] = this.firstOf[row] + counts[row];
    this.low = new Int32Array(this.firstOf[this.rows]);
    this.high = new Int32Array(this.firstOf[this.rows]);
    this.held = new Float64Array(this.rows);
    this.readIntervals(at, columns);
    if (this.takes) {
      this.held = this.takes.cores.map((cores, row) => (this.held[row] ? cores : 0));
      this.size = this.takes.cores;
    }
    /** failures, and the use of each attempt's unit time; null if nothing could fail */
    this.failures = facts.breakdowns && readFailures(bytes, facts.breakdowns);
    this.jobOf = columns.job ? Uint32Array.from(at(columns.job)) : new Uint32Array(this.rows).map((_, row) => row);
    this.jobs = this.rows ? this.jobOf[this.rows - 1] + 1 : 0;
    this.id = textsOf(bytes, columns.jobs);
    this.job = this.readJobs(waits);
    /** selected jobs, their number, and those that ended; set by `State.choose` */
    this.chosen = new Uint8Array(this.jobs);
    this.count = 0;
    this.ended = new Uint32Array(0);
    /** @type {Map<string, number> | null} indices of jobs by id, built on first use */
    this.places = null;
    /** @type {import("./gantt.js").Gantt | null} the drawing of its machine */
    this.gantt = null;
    this.from = this.rows ? this.submit.reduce((least, time) => Math.min(least, time)) : 0;
    this.to = Math.max(facts.until, this.from + 1);
  }

  /** Unpack the units of each row. @type {(at: Reader, columns: Record<string, any>) => void} */
  readIntervals(at, columns) {
    const first = at(columns.first), gaps = at(columns.gap), lengths = at(columns.length);
    let opened = 0, gap = 0, length = 0;
    for (let row = 0; row < this.rows; row++) {
      for (let k = this.firstOf[row]; k < this.firstOf[row + 1]; k++) {
        const last = k === this.firstOf[row + 1] - 1;
        this.low[k] = k === this.firstOf[row] ? first[opened++] : this.high[k - 1] + 2 + gaps[gap++];
        const units = columns.as_asked && last ? this.size[row] - this.held[row] : lengths[length++] + 1;
        this.high[k] = this.low[k] + units - 1;
        this.held[row] += units;
      }
    }
  }

  /**
   * The jobs. A requeued job is one job; its wait and execution time are the sums over its attempts, as in the summary.
   * `last` is the row of its last attempt.
   * @param {Float64Array} waits
   */
  readJobs(waits) {
    const job = this.facts.columns.job ? this.overAttempts(waits)
      : {submit: this.submit, wait: waits, execution: this.execution, size: this.size, end: this.end, first: this.jobOf, last: this.jobOf};
    const tried = this.failures?.attempts;
    const open = this.state.names.map((name) => name === "REJECTED" || name === "RUNNING");
    const slowdown = new Float64Array(this.jobs), bounded = new Float64Array(this.jobs), turnaround = added(job.wait, job.execution);
    /** 1 for a job that ended, killed or not; figures cover these */
    const ended = new Uint8Array(this.jobs);
    for (let i = 0; i < this.jobs; i++) {
      ended[i] = open[this.state.of[job.last[i]]] || (tried && tried.retried[job.last[i]]) ? 0 : 1;
      slowdown[i] = job.execution[i] > 0 ? turnaround[i] / job.execution[i] : 1;
      bounded[i] = Math.max(1, turnaround[i] / Math.max(job.execution[i], 10));
    }
    return {...job, ended, slowdown, bounded, turnaround};
  }

  /** Make the jobs' columns from those of their attempts. @param {Float64Array} waits */
  overAttempts(waits) {
    const make = () => new Float64Array(this.jobs);
    const found = {submit: make(), wait: make(), execution: make(), size: make(), end: make(), last: new Uint32Array(this.jobs), first: new Uint32Array(this.jobs).fill(this.rows)};
    for (let row = 0; row < this.rows; row++) {
      const job = this.jobOf[row];
      if (found.first[job] === this.rows) {
        found.first[job] = row;
        found.submit[job] = this.submit[row];
        found.size[job] = this.size[row];
      }
      found.wait[job] += waits[row];
      found.execution[job] += this.execution[row];
      found.last[job] = row;
      found.end[job] = this.end[row];
    }
    return found;
  }

  /** The areas of the machine's chart; on shared nodes for one resource, by default cores. @type {(resource: string) => Lanes} */
  lanes(resource) {
    const {takes} = this, shown = takes?.resource(resource) ?? takes?.resource("cores");
    return takes && shown ? nodeLanes(this, takes, shown) : unitLanes(this);
  }

  /** What an attempt holds, such as "16 units" or "4 cores, 32 GiB memory". @type {(row: number) => string} */
  holding(row) {
    const {takes} = this;
    if (!takes || !this.held[row]) return words.count(this.size[row], this.unit);
    return takes.resources.map((one) => [one.name, takes.amount(one, row)]).filter(([, amount]) => amount)
      .map(([name, amount]) => words.amount(String(name), Number(amount))).join(", ");
  }

  /** The index of a job by its id, -1 if unknown. @type {(text: string) => number} */
  find(text) {
    this.places ||= new Map(Array.from({length: this.jobs}, (_, job) => [this.id(job), job]));
    const prefixes = Object.keys(this.facts.config.workloads);
    return this.places.get(text) ?? (prefixes.length === 1 ? this.places.get(`${prefixes[0]}!${text}`) : null) ?? -1;
  }

  /** @type {(row: number) => string} */
  stateOf(row) {
    return this.state.names[this.state.of[row]];
  }

  /** @type {(name: string, row: number) => string} */
  label(name, row) {
    const column = this.labels[name];
    return column ? column.names[column.of[row]] : "";
  }

  /** A short description of a job, by one of its attempts. @type {(row: number) => string} */
  about(row) {
    const user = this.label("user", row);
    return `${this.id(this.jobOf[row])}${user ? ` of user ${user}` : ""}, ${this.holding(row)}`;
  }

  /** The units of a node, first and last. @type {(node: number) => [number, number]} */
  unitsOf(node) {
    let unit = 0, before = 0;
    for (const pool of this.facts.machine.pools) {
      if (node < before + pool.nodes) return [unit + (node - before) * pool.units, unit + (node - before + 1) * pool.units - 1];
      unit += pool.nodes * pool.units;
      before += pool.nodes;
    }
    return [unit, unit];
  }

  /** The node of a unit and its pool. @type {(unit: number) => {node: number, pool: string}} */
  nodeOf(unit) {
    let first = 0, before = 0;
    for (const pool of this.facts.machine.pools) {
      if (unit < first + pool.nodes * pool.units) return {node: before + Math.floor((unit - first) / pool.units), pool: pool.name};
      first += pool.nodes * pool.units;
      before += pool.nodes;
    }
    return {node: before - 1, pool: ""};
  }
}

/** All runs of the page. */
export async function readRuns() {
  /** @type {Facts} */
  const facts = readFacts();
  const bytes = await unpacked(byId("packed").textContent ?? "");
  return {facts, bytes, runs: facts.runs.map((run, number) => new Run(bytes, run, number))};
}
