"use strict";
// The runs of the page: packed columns (reports/page/packing.py writes them) as typed arrays.

/** The bytes of the page's block of columns. */
async function unpacked(text) {
  const characters = atob(text);
  const bytes = new Uint8Array(characters.length);
  for (let i = 0; i < bytes.length; i++) bytes[i] = characters.charCodeAt(i);
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate-raw"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

/** A column of numbers. */
function numbersOf(bytes, place) {
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

/** A column of names: what they are, and the place of each row's among them. */
function namesOf(bytes, place) {
  return {names: place.names, of: Uint32Array.from(numbersOf(bytes, place.of))};
}

/** A function that gives the text of a row. */
function textsOf(bytes, place) {
  const shapes = namesOf(bytes, place.shapes);
  const numbers = numbersOf(bytes, place.numbers);
  const pieces = shapes.names.map((name) => (numbers.length ? name.split("\0") : [name]));
  const begins = new Uint32Array(shapes.of.length + 1);
  for (let i = 0; i < shapes.of.length; i++) begins[i + 1] = begins[i] + pieces[shapes.of[i]].length - 1;
  return (row) => pieces[shapes.of[row]].map((piece, i) => (i ? numbers[begins[row] + i - 1] : "") + piece).join("");
}

/** The sums of two columns. */
function added(one, other) {
  const found = new Float64Array(one.length);
  for (let i = 0; i < one.length; i++) found[i] = one[i] + other[i];
  return found;
}

/** A run: its attempts (rows) and its jobs as columns; times in seconds since time 0. */
class Run {
  constructor(bytes, facts, number) {
    const columns = facts.columns, at = (place) => numbersOf(bytes, place);
    this.facts = facts;
    this.name = facts.name;
    this.number = number;
    this.clock = new Clock(facts.epoch, facts.timezone);
    this.units = facts.machine.units;
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
    this.labels = Object.fromEntries(Object.entries(columns.labels).map(([name, place]) => [name, namesOf(bytes, place)]));
    this.readIntervals(at, columns);
    this.readFailures(bytes, at, facts.breakdowns);
    this.readJobs(at, columns, textsOf(bytes, columns.jobs), waits);
    this.from = this.rows ? this.submit.reduce((least, time) => Math.min(least, time)) : 0;
    this.to = Math.max(facts.until, this.from + 1);
  }

  /** Which units each row had: low[k] to high[k] for k from firstOf[row] to before firstOf[row + 1]. */
  readIntervals(at, columns) {
    const counts = at(columns.intervals), first = at(columns.first), gaps = at(columns.gap), lengths = at(columns.length);
    this.firstOf = new Uint32Array(this.rows + 1);
    for (let row = 0; row < this.rows; row++) this.firstOf[row + 1] = this.firstOf[row] + counts[row];
    const total = this.firstOf[this.rows];
    this.low = new Int32Array(total);
    this.high = new Int32Array(total);
    this.held = new Float64Array(this.rows);
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

  /** What failed, and what each attempt's units spent their time on; null where nothing could fail. */
  readFailures(bytes, at, told) {
    this.failures = null;
    if (!told) return;
    const columns = (places) => places && Object.fromEntries(Object.entries(places).map(([name, place]) => [name, "of" in place ? namesOf(bytes, place) : at(place)]));
    this.failures = {outages: columns(told.outages), nodes: columns(told.nodes), attempts: null, cause: null};
    if (told.attempts) {
      this.failures.attempts = columns(told.attempts.columns);
      this.failures.cause = namesOf(bytes, told.attempts.cause);
    }
  }

  /**
   * The jobs: a job that lost its nodes and came back is one, whose wait and execution time are the sums over its
   * attempts, as in the summary. `last` is the row of its last attempt.
   */
  readJobs(at, columns, id, waits) {
    this.jobOf = columns.job ? Uint32Array.from(at(columns.job)) : new Uint32Array(this.rows).map((_, row) => row);
    this.jobs = this.rows ? this.jobOf[this.rows - 1] + 1 : 0;
    this.id = id;
    this.job = columns.job ? this.overAttempts(waits)
      : {submit: this.submit, wait: waits, execution: this.execution, size: this.size, end: this.end, first: this.jobOf, last: this.jobOf};
    const {job} = this, tried = this.failures && this.failures.attempts;
    const open = this.state.names.map((name) => name === "REJECTED" || name === "RUNNING");
    /** 1 for a job that ended, killed or not: those that the figures are of */
    job.ended = new Uint8Array(this.jobs);
    job.slowdown = new Float64Array(this.jobs);
    job.bounded = new Float64Array(this.jobs);
    job.turnaround = added(job.wait, job.execution);
    for (let i = 0; i < this.jobs; i++) {
      job.ended[i] = open[this.state.of[job.last[i]]] || (tried && tried.retried[job.last[i]]) ? 0 : 1;
      job.slowdown[i] = job.execution[i] > 0 ? job.turnaround[i] / job.execution[i] : 1;
      job.bounded[i] = Math.max(1, job.turnaround[i] / Math.max(job.execution[i], 10));
    }
  }

  /** Columns of jobs out of those of their attempts. */
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

  /** The place of a job by its id, -1 if there is none. */
  find(text) {
    this.places ||= new Map(Array.from({length: this.jobs}, (_, job) => [this.id(job), job]));
    if (this.places.has(text)) return this.places.get(text);
    const prefixes = Object.keys(this.facts.config.workloads);
    return prefixes.length === 1 ? this.places.get(`${prefixes[0]}!${text}`) ?? -1 : -1;
  }

  stateOf(row) {
    return this.state.names[this.state.of[row]];
  }

  label(name, row) {
    const column = this.labels[name];
    return column ? column.names[column.of[row]] : "";
  }

  /** The units of a node, first and last. */
  unitsOf(node) {
    let unit = 0, before = 0;
    for (const pool of this.facts.machine.pools) {
      if (node < before + pool.nodes) return [unit + (node - before) * pool.units, unit + (node - before + 1) * pool.units - 1];
      unit += pool.nodes * pool.units;
      before += pool.nodes;
    }
    return [unit, unit];
  }

  /** The node of a unit and its pool. */
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
async function readRuns() {
  const facts = JSON.parse(document.getElementById("facts").textContent);
  const bytes = await unpacked(document.getElementById("packed").textContent);
  return {facts, bytes, runs: facts.runs.map((run, number) => new Run(bytes, run, number))};
}
