// EASY backfilling for Pipistrelle, in JavaScript, with the package zeromq.
//
//     pipistrelle run --scheduler schedulers/foreign/javascript
//
// The first in the queue that does not fit gets a reservation: the time at which, by the walltimes of the running jobs,
// enough units will be free for it (the shadow), and what is left over then (the extra units). A job behind it may
// start if it ends by the shadow, or needs no more than the extra units. Every job gets the lowest free units.
//
// See docs/how-to/foreign-schedulers.md and protocol/SPEC.md.
"use strict";
const zmq = require("zeromq");

// Longest silence of the server, in ms; ZeroMQ itself would wait for ever for a server that is gone.
const SILENCE = 600 * 1000;

// -- sets of units: ascending intervals [first, last] that do not touch -----------------------------------------------

class Units {
  constructor(count) {
    this.intervals = [[0, count - 1]];
    this.count = count;
  }

  /** Takes the lowest units and returns them as text, such as "0-3 8"; there are enough. */
  takeLowest(count) {
    const taken = [];
    this.count -= count;
    while (count > 0) {
      const [first, last] = this.intervals[0];
      const end = Math.min(last, first + count - 1);
      taken.push(end > first ? `${first}-${end}` : `${first}`);
      count -= end - first + 1;
      if (end === last) this.intervals.shift();
      else this.intervals[0] = [end + 1, last];
    }
    return taken.join(" ");
  }

  giveBack(text) {
    for (const piece of text.split(" ").filter(Boolean)) {
      let [first, last = first] = piece.split("-").map(Number);
      this.count += last - first + 1;
      const place = this.intervals.findIndex((interval) => interval[0] > last);
      const at = place < 0 ? this.intervals.length : place;
      let [from, until] = [at, at]; // the neighbours that it joins with
      if (at < this.intervals.length && this.intervals[at][0] === last + 1) last = this.intervals[until++][1];
      if (at > 0 && this.intervals[at - 1][1] === first - 1) first = this.intervals[--from][0];
      this.intervals.splice(from, until - from, [first, last]);
    }
  }
}

// -- the scheduler ----------------------------------------------------------------------------------------------------

/** Puts a job into a list that is sorted by `key`, ties by the jobs' numbers; most join near the end. */
function insert(list, job, key) {
  let place = list.length;
  const before = (other) => (job[key] !== other[key] ? job[key] < other[key] : job.number < other.number);
  while (place > 0 && before(list[place - 1])) place--;
  list.splice(place, 0, job);
}

class Easy {
  constructor() {
    this.total = 0; // units of the machine
    this.free = null; // Units
    this.beside = 0; // s, the longest prologue and epilogue
    this.submitted = 0; // jobs so far; their numbers settle ties
    this.waiting = []; // by submit time
    this.running = []; // by end
    this.decisions = [];
    this.now = 0; // s of simulated time, never of a clock
  }

  /** Returns the reply to a notice; null if the simulation has ended. */
  answer({ seq, now, events }) {
    this.now = now;
    this.decisions = [];
    for (const { type, timestamp, data } of events) {
      if (type === "SIMULATION_BEGINS") this.begin(data);
      else if (type === "JOB_SUBMITTED") this.submit(data.job, timestamp);
      else if (type === "JOB_COMPLETED") this.complete(data);
      else if (type === "DECISION_REJECTED") throw new Error(data.message);
      else if (type === "SIMULATION_ENDS") return null;
    }
    while (this.waiting.length && this.waiting[0].res <= this.free.count) this.start(this.waiting.shift());
    if (this.waiting.length && this.free.count) this.backfill();
    const reply = { reply_to: seq, now, events: this.decisions };
    const least = this.waiting.reduce((least, job) => Math.min(least, job.res), Infinity);
    if (least > this.free.count) reply.wake_when = wakeWhen(least);
    return reply;
  }

  begin({ nb_resources: count, platform }) {
    const longest = (key) => Math.max(0, ...(platform?.pools ?? []).map((pool) => pool[key] ?? 0));
    this.beside = longest("prologue") + longest("epilogue");
    this.total = count;
    this.free = new Units(count);
  }

  submit(asked, timestamp) {
    const number = this.submitted++;
    if (asked.res > this.total) {
      this.reject(asked.id, `needs ${asked.res} units, the machine has ${this.total}`);
    } else if (asked.constraint != null || asked.units_per_node != null) {
      this.reject(asked.id, "asks for nodes of some kind, which this scheduler does not tell apart");
    } else {
      const { id, res } = asked;
      const occupies = (asked.walltime ?? Infinity) + this.beside; // s that it may hold its units
      insert(this.waiting, { id, res, number, submit: asked.subtime ?? timestamp, occupies, end: NaN }, "submit");
    }
  }

  complete({ job_id: id, alloc }) {
    const place = this.running.findIndex((job) => job.id === id);
    if (place < 0) throw new Error(`a job has ended that did not run: ${id}`);
    this.running.splice(place, 1);
    this.free.giveBack(alloc);
  }

  /** Lets jobs pass the first in the queue, which does not fit. */
  backfill() {
    const [first] = this.waiting;
    let shadow = Infinity;
    let thenFree = this.free.count;
    for (const job of this.running) {
      if (job.end > shadow) break; // all that end by then count
      thenFree += job.res;
      if (thenFree >= first.res) shadow = job.end;
    }
    let extra = Math.max(thenFree - first.res, 0);
    const started = new Set();
    for (const job of this.waiting) {
      if (this.free.count === 0) break;
      const inTime = this.now + job.occupies <= shadow;
      if (job === first || job.res > this.free.count || !(inTime || job.res <= extra)) continue;
      if (!inTime) extra -= job.res;
      this.start(job, `backfilled before ${first.id}`);
      started.add(job);
    }
    if (started.size) this.waiting = this.waiting.filter((job) => !started.has(job));
  }

  start(job, why) {
    job.end = this.now + job.occupies;
    insert(this.running, job, "end");
    this.decide("EXECUTE_JOB", { job_id: job.id, alloc: this.free.takeLowest(job.res), why });
  }

  reject(id, why) {
    this.decide("REJECT_JOB", { job_id: id, why });
  }

  decide(type, data) {
    this.decisions.push({ timestamp: this.now, type, data });
  }
}

// -- the conversation -------------------------------------------------------------------------------------------------

/** Returns the events that can start a job, if no queued job fits and the smallest needs `least` units. */
function wakeWhen(least) {
  return { JOB_SUBMITTED: [{ spare: 0 }], JOB_COMPLETED: least < Infinity ? [{ free: least }] : [] };
}

async function main() {
  const endpoint = process.argv[2] ?? process.env.PIPISTRELLE_ENDPOINT;
  if (!endpoint) throw new Error("usage: node easy.js ENDPOINT");
  const socket = new zmq.Request({ receiveTimeout: SILENCE, linger: 0 });
  socket.connect(endpoint);

  async function ask(message) {
    await socket.send(JSON.stringify(message));
    const [frame] = await socket.receive();
    const received = JSON.parse(frame.toString());
    if (received.type === "REFUSED") throw new Error(`the server refused: ${received.data.message}`);
    return received;
  }

  await ask({ type: "HELLO", data: { name: "easy-js", features: ["wake_when"] } });
  const easy = new Easy();
  let reply = { reply_to: 0, now: 0, events: [] };
  while (reply !== null) reply = easy.answer(await ask(reply));
  socket.close();
}

main().catch((error) => {
  console.error(`easy-js: ${error.message}`);
  process.exit(1);
});
