// A scheduler for Pipistrelle: first come, first served. It needs only Node.
//
//     pipistrelle run --strict --scheduler node scheduler.js {endpoint}
//
// 'pipistrelle help write-your-scheduler' explains it; 'pipistrelle help protocol' shows all messages.
"use strict";
const net = require("node:net");

// -- the scheduler: change this part ----------------------------------------------------------------------------------

const queue = []; // queued jobs: {id, res, walltime, request, ...}
let machine; // the free units or nodes

/** Processes the events up to `now` (simulated time, s) and returns the decisions. */
function decide(now, events) {
  for (const { type, data } of events) {
    if (type === "SIMULATION_BEGINS") {
      const shares = data.platform?.pools.some((pool) => pool.resources);
      machine = shares ? new Nodes(data.platform) : new Units(data.nb_resources);
    } else if (type === "JOB_SUBMITTED") queue.push(data.job);
    else if (type === "JOB_COMPLETED") machine.giveBack(data);
    else if (type === "DECISION_REJECTED") {
      console.error(data.message); // a correct scheduler never gets this event
      process.exit(1);
    }
  }
  const decisions = [];
  for (let start; queue.length && (start = machine.place(queue[0])); ) {
    decisions.push({ timestamp: now, type: "EXECUTE_JOB", data: { job_id: queue.shift().id, ...start } });
  }
  return decisions;
}

/**
 * Returns the events that need no notice now; {} if any event may start a job.
 *
 * A new job cannot pass a queued one, and an empty queue needs no free units.
 */
function wakeWhen() {
  return queue.length ? { JOB_SUBMITTED: [] } : { JOB_COMPLETED: [] };
}

/** A machine whose units jobs do not share: each job takes the lowest free ones. */
class Units {
  constructor(count) {
    this.free = [[0, count - 1]]; // intervals [first, last], ascending, never adjacent
  }

  /** Takes the units of a job and returns them as in EXECUTE_JOB; null if too few are free. */
  place(job) {
    let count = job.res;
    if (count > sum(this.free.map(([first, last]) => last - first + 1))) return null;
    const taken = [];
    while (count > 0) {
      const [first, last] = this.free[0];
      const end = Math.min(last, first + count - 1);
      taken.push(end > first ? `${first}-${end}` : `${first}`);
      count -= end - first + 1;
      if (end === last) this.free.shift();
      else this.free[0] = [end + 1, last];
    }
    return { alloc: taken.join(" ") };
  }

  /** Frees the units of a job that has ended. */
  giveBack(ended) {
    const merged = [];
    const parts = [...this.free, ...intervals(ended.alloc ?? "")];
    for (const [first, last] of parts.sort((one, other) => one[0] - other[0])) {
      if (merged.length && merged.at(-1)[1] + 1 === first) merged.at(-1)[1] = last;
      else merged.push([first, last]);
    }
    this.free = merged;
  }
}

/** A machine whose nodes jobs share: each job takes cores, memory and GPUs of the first nodes where it fits. */
class Nodes {
  constructor(platform) {
    this.licenses = { ...platform.licenses }; // free licences
    this.held = new Map(); // job id: [its request, what it holds: [node, amounts, numbers of GPUs]]
    this.nodes = []; // by weight and number
    const countsMemory = platform.pools.some((pool) => "memory" in (pool.resources.amounts ?? {}));
    for (const pool of [...platform.pools].sort((one, other) => (one.weight ?? 1) - (other.weight ?? 1))) {
      for (const [first, last] of intervals(pool.nodes)) {
        for (let at = first; at <= last; at++) this.nodes.push(new Node(at, pool.resources, countsMemory));
      }
    }
  }

  /** Takes what a job requests and returns it as in EXECUTE_JOB; null if too little is free. */
  place(job) {
    const request = new Request(job.request);
    const licenses = Object.entries(request.licenses);
    const chosen = licenses.every(([name, count]) => count <= this.licenses[name]) && request.choose(this.nodes);
    if (!chosen) return null;
    const [takes, held] = [[], []];
    for (const [node, tasks, gpus] of request.divide(chosen)) {
      const amounts = request.exclusive ? { ...node.free } : request.taken(tasks, gpus);
      const numbers = request.exclusive ? [...node.gpus.keys()] : node.fullest(gpus, request.share);
      node.change(-1, amounts, numbers, request.share);
      held.push([node, amounts, numbers]);
      takes.push({ nodes: `${node.number}`, tasks, gpus: numbers.join(" ") });
    }
    for (const [name, count] of licenses) this.licenses[name] -= count;
    this.held.set(job.id, [request, held]);
    return { alloc: takes.map((take) => take.nodes).join(" "), takes };
  }

  /** Frees what a job that has ended held. */
  giveBack(ended) {
    const [request, held] = this.held.get(ended.job_id);
    this.held.delete(ended.job_id);
    for (const [name, count] of Object.entries(request.licenses)) this.licenses[name] += count;
    for (const [node, amounts, numbers] of held) node.change(1, amounts, numbers, request.share);
  }
}

/** What is free of a node. */
class Node {
  constructor(number, has, countsMemory) {
    this.number = number;
    this.model = has.gpu_model ?? "";
    this.free = { ...has.amounts }; // amounts of resources, in their base units
    if (!countsMemory) this.free.memory = Number.MAX_SAFE_INTEGER; // a machine that does not count memory has enough
    this.gpus = Array(has.gpus ?? 0).fill(1000); // thousandths of each GPU
    this.jobs = 0;
  }

  /** Returns the numbers of the GPUs with the least free capacity that suffices. */
  fullest(count, share) {
    const enough = [...this.gpus.keys()].filter((gpu) => this.gpus[gpu] >= share);
    const chosen = enough.sort((one, other) => this.gpus[one] - this.gpus[other]).slice(0, count);
    return chosen.sort((one, other) => one - other);
  }

  /** Takes (-1) or frees (+1) amounts, and a share of each of some GPUs. */
  change(sign, amounts, gpus, share) {
    this.jobs -= sign;
    for (const [name, amount] of Object.entries(amounts)) this.free[name] = (this.free[name] ?? 0) + sign * amount;
    for (const gpu of gpus) this.gpus[gpu] += sign * share;
  }
}

/** What a job requests; 'pipistrelle help protocol' explains the fields of a request. */
class Request {
  constructor(told) {
    this.exclusive = told.exclusive ?? false;
    this.licenses = told.licenses ?? {};
    this.others = told.others ?? {};
    this.coresPerTask = told.cores_per_task ?? 1000;
    this.memoryPerNode = told.memory_per_node ?? 0;
    this.memoryPerTask = Math.ceil(((told.memory_per_core ?? 0) * Math.max(this.coresPerTask, 1)) / 1000);
    this.memoryPerGpu = told.memory_per_gpu ?? 0;
    this.gpus = told.gpus ?? 0;
    this.gpusPerNode = told.gpus_per_node ?? 0;
    this.gpusPerTask = told.gpus_per_task ?? 0;
    this.gpuModels = told.gpu_models ?? [];
    this.share = this.exclusive ? 1000 : (told.gpu_share ?? 1000);
    // The numbers of tasks and nodes of the whole job, and of tasks and GPUs on each node.
    const { nodes, tasks_per_node: perNode, tasks } = told;
    this.tasks = tasks ?? (nodes ?? 1) * (perNode ?? 1);
    this.mostTasks = perNode ?? tasks ?? 1;
    this.leastNodes = Math.max(nodes ?? 1, Math.ceil(this.tasks / this.mostTasks));
    this.mostNodes = Math.max(this.leastNodes, tasks ? Math.min(told.most_nodes ?? nodes ?? tasks, tasks) : 1);
    this.leastTasks = Math.max(1, this.tasks - this.mostTasks * (this.mostNodes - 1));
    this.leastGpus = this.gpus && Math.max(1, Math.floor(this.gpus / this.mostNodes));
  }

  /** Returns the amounts that the job takes of a node with this number of its tasks and GPUs. */
  taken(tasks, gpus) {
    const memory = this.memoryPerNode + tasks * this.memoryPerTask + gpus * this.memoryPerGpu;
    return { cores: tasks * this.coresPerTask, memory, ...this.others };
  }

  /** Returns how many tasks and GPUs of the job fit on a node now; no tasks if they are too few. */
  room(node) {
    const freeGpus = node.gpus.filter((free) => free >= this.share).length;
    const fits = (tasks, gpus) => {
      const all = gpus + this.gpusPerNode + this.gpusPerTask * tasks;
      const amounts = Object.entries(this.taken(tasks, all));
      return all <= freeGpus && amounts.every(([name, amount]) => amount <= (node.free[name] ?? 0));
    };
    let [tasks, gpus] = [this.leastTasks, this.leastGpus];
    const wrongModel = this.gpuModels.length > 0 && !this.gpuModels.includes(node.model);
    if (wrongModel || (this.exclusive && node.jobs > 0) || !fits(tasks, gpus)) return [0, 0];
    while (gpus < this.gpus && fits(tasks, gpus + 1)) gpus++;
    while (tasks < this.mostTasks && fits(tasks + 1, this.leastGpus)) tasks++;
    return [tasks, gpus];
  }

  /**
   * Returns the first nodes on which the job fits, each with its room there; null if it does not fit now.
   *
   * A job with a fixed number of nodes prefers those with room for an equal part of its tasks. If the first nodes do
   * not suffice, the job gets those with the most room.
   */
  choose(nodes) {
    const rooms = nodes.map((node) => [node, ...this.room(node)]).filter(([, tasks]) => tasks);
    const isFixed = this.leastNodes === this.mostNodes;
    const first = isFixed ? rooms.filter(([, tasks]) => tasks * this.leastNodes >= this.tasks) : rooms;
    const mostTasks = [...rooms].sort((one, other) => other[1] - one[1]);
    const mostGpus = [...rooms].sort((one, other) => other[2] - one[2]);
    for (const order of [first, mostTasks, mostGpus]) {
      for (let count = 1, tasks = 0, gpus = 0; count <= Math.min(this.mostNodes, order.length); count++) {
        tasks += order[count - 1][1];
        gpus += order[count - 1][2];
        if (count >= this.leastNodes && tasks >= this.tasks && gpus >= this.gpus) return order.slice(0, count);
      }
    }
    return null;
  }

  /** Returns the chosen nodes by number, and the job's tasks and GPUs on each: as many as fit, but some on all. */
  divide(chosen) {
    let [tasksLeft, gpusLeft, later] = [this.tasks, this.gpus, chosen.length];
    const leastGpus = Math.min(this.leastGpus, Math.floor(this.gpus / chosen.length));
    return chosen.sort((one, other) => one[0].number - other[0].number).map(([node, mostTasks, mostGpus]) => {
      later--; // nodes after this one
      const tasks = Math.min(mostTasks, tasksLeft - later);
      const gpus = Math.min(mostGpus, gpusLeft - later * leastGpus);
      tasksLeft -= tasks;
      gpusLeft -= gpus;
      return [node, tasks, gpus + this.gpusPerNode + this.gpusPerTask * tasks];
    });
  }
}

const sum = (numbers) => numbers.reduce((one, other) => one + other, 0);

/** Returns the intervals [first, last] of a set of units: "0-3 8". */
function intervals(text) {
  return text.split(" ").filter(Boolean).map((piece) => {
    const [first, last] = piece.split("-").map(Number);
    return [first, last ?? first];
  });
}

// -- the connection: a ZeroMQ REQ socket (ZMTP 3.0); no changes needed ------------------------------------------------

const endpoint = process.argv[2] ?? process.env.PIPISTRELLE_ENDPOINT ?? "";
const [, host, port] = /^tcp:\/\/\[?([^\]]*)\]?:(\d+)$/.exec(endpoint) ?? [];
if (!host && !endpoint.startsWith("ipc://")) {
  console.error("usage: node FILE ENDPOINT");
  process.exit(2);
}
const socket = host ? net.connect(Number(port), host) : net.connect(endpoint.slice("ipc://".length));
socket.on("error", (error) => {
  console.error(`${endpoint}: ${error.message}`);
  process.exit(1);
});

/** Yields the server's frames as [flags, content]; the first is its greeting. */
async function* frames() {
  let bytes = Buffer.alloc(0);
  let greeted = false;
  for await (const more of socket) {
    bytes = bytes.length ? Buffer.concat([bytes, more]) : more;
    for (;;) {
      const long = greeted && bytes.length > 0 && bytes[0] & 2;
      const head = greeted ? (long ? 9 : 2) : 0;
      if (bytes.length < Math.max(head, 1)) break;
      const size = greeted ? (long ? Number(bytes.readBigUInt64BE(1)) : bytes[1]) : 64;
      if (bytes.length < head + size) break;
      yield [greeted ? bytes[0] : -1, bytes.subarray(head, head + size)];
      bytes = bytes.subarray(head + size);
      greeted = true;
    }
  }
}

function send(message) {
  const content = Buffer.from(JSON.stringify(message));
  const head = Buffer.alloc(11); // an empty frame, then the length of the content
  head.set([1, 0, 2]);
  head.writeBigUInt64BE(BigInt(content.length), 3);
  socket.write(Buffer.concat([head, content]));
}

async function main() {
  const greeting = Buffer.alloc(64);
  greeting.set([255, 0, 0, 0, 0, 0, 0, 0, 0, 127, 3, 0]);
  greeting.write("NULL", 12);
  socket.write(greeting);
  const ready = Buffer.from("\x05READY\x0bSocket-Type\0\0\0\x03REQ", "latin1");
  for await (const [flags, content] of frames()) {
    if (flags < 0) socket.write(Buffer.concat([Buffer.from([4, ready.length]), ready]));
    // The server's READY.
    else if (flags & 4) send({ type: "HELLO", data: { name: "fcfs-js", features: ["resources", "wake_when"] } });
    else if (!(flags & 1)) {
      const message = JSON.parse(content.toString());
      if (message.type === "REFUSED") throw new Error(message.data.message);
      if (message.type === "WELCOME") send({ reply_to: 0, now: 0, events: [] });
      else {
        const decisions = decide(message.now, message.events);
        if (message.events.at(-1)?.type === "SIMULATION_ENDS") process.exit(0);
        send({ reply_to: message.seq, now: message.now, events: decisions, wake_when: wakeWhen() });
      }
    }
  }
  throw new Error("the server has gone");
}

main().catch((error) => {
  console.error(error.message);
  process.exit(1);
});
