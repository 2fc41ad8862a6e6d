// A scheduler for Pipistrelle: first come, first served. It needs only Node.
//
//     pipistrelle run --strict --scheduler node scheduler.js {endpoint}
//
// 'pipistrelle help write-your-scheduler' explains it; 'pipistrelle help protocol' shows all messages.
"use strict";
const net = require("node:net");

// -- the scheduler: change this part ----------------------------------------------------------------------------------

const queue = []; // queued jobs: {id, res, walltime, ...}
let free = []; // free units: intervals [first, last], ascending, never adjacent

/** Takes the `count` lowest free units and returns them as text, such as "0-3 8". */
function takeLowest(count) {
  const taken = [];
  while (count > 0) {
    const [first, last] = free[0];
    const end = Math.min(last, first + count - 1);
    taken.push(end > first ? `${first}-${end}` : `${first}`);
    count -= end - first + 1;
    if (end === last) free.shift();
    else free[0] = [end + 1, last];
  }
  return taken.join(" ");
}

/** Frees the units in a text such as "0-3 8". */
function giveBack(text) {
  const back = text.split(" ").filter(Boolean).map((piece) => {
    const [first, last] = piece.split("-").map(Number);
    return [first, last ?? first];
  });
  const merged = [];
  for (const [first, last] of [...free, ...back].sort((one, other) => one[0] - other[0])) {
    if (merged.length && merged.at(-1)[1] + 1 === first) merged.at(-1)[1] = last;
    else merged.push([first, last]);
  }
  free = merged;
}

/** Processes the events up to `now` (simulated time, s) and returns the decisions. */
function decide(now, events) {
  for (const { type, data } of events) {
    if (type === "SIMULATION_BEGINS") free = [[0, data.nb_resources - 1]];
    else if (type === "JOB_SUBMITTED") queue.push(data.job);
    else if (type === "JOB_COMPLETED") giveBack(data.alloc ?? "");
    else if (type === "DECISION_REJECTED") {
      console.error(data.message); // a correct scheduler never gets this event
      process.exit(1);
    }
  }
  const decisions = [];
  let count = free.reduce((sum, [first, last]) => sum + last - first + 1, 0);
  while (queue.length && queue[0].res <= count) {
    const job = queue.shift();
    count -= job.res;
    decisions.push({ timestamp: now, type: "EXECUTE_JOB", data: { job_id: job.id, alloc: takeLowest(job.res) } });
  }
  return decisions;
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
    else if (flags & 4) send({ type: "HELLO", data: { name: "fcfs-js" } }); // the server's READY
    else if (!(flags & 1)) {
      const message = JSON.parse(content.toString());
      if (message.type === "REFUSED") throw new Error(message.data.message);
      if (message.type === "WELCOME") send({ reply_to: 0, now: 0, events: [] });
      else {
        const decisions = decide(message.now, message.events);
        if (message.events.at(-1)?.type === "SIMULATION_ENDS") process.exit(0);
        send({ reply_to: message.seq, now: message.now, events: decisions });
      }
    }
  }
  throw new Error("the server has gone");
}

main().catch((error) => {
  console.error(error.message);
  process.exit(1);
});
