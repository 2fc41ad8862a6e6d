// Reads a SIMULATION_BEGINS (a notice, a line of JSON) and prints where each node is: its number, name and coordinates.
//
//     node places.js < begins.json
//
// A scheduler calls `places` with the topology and the number of nodes; protocol/SPEC.md, "The topology object", has the rule.
"use strict";

/** Returns the numbers in a text such as "0-3 8". */
function numbers(text) {
  return text.split(" ").filter(Boolean).flatMap((piece) => {
    const [first, last = first] = piece.split("-").map(Number);
    return Array.from({ length: last - first + 1 }, (_, index) => first + index);
  });
}

/** Returns the names that a rule such as "c[0-1]s[08-10],login" gives; the last range counts fastest. */
function names(rule) {
  return rule.split(",").filter(Boolean).flatMap((part) => {
    let found = [""];
    for (const piece of part.match(/\[\d+-\d+\]|[^[]+/g)) {
      const [, first, last] = /^\[(\d+)-(\d+)\]$/.exec(piece) ?? [];
      const texts = first === undefined ? [piece] : [];
      for (let number = Number(first); number <= Number(last); number++) texts.push(String(number).padStart(first.length, "0"));
      found = found.flatMap((before) => texts.map((text) => before + text));
    }
    return found;
  });
}

/** Returns [{name, at}] of nodes 0, 1, ..., where `at` has the coordinates of the node's router. */
function places(topology, nodes) {
  const { shape = [], nodes_per_router: each = 1, absent = "", names: rule = "" } = topology;
  const digits = topology.numbering ?? shape.map((count, dimension) => [dimension, count]);
  const missing = new Set(numbers(absent));
  const called = names(rule);
  const found = [];
  for (let place = 0; found.length < nodes; place++) {
    if (missing.has(place)) continue;
    const at = shape.map(() => 0);
    const weight = shape.map(() => 1);
    let router = Math.floor(place / each);
    for (const [dimension, count] of [...digits].reverse()) {
      at[dimension] += (router % count) * weight[dimension];
      weight[dimension] *= count;
      router = Math.floor(router / count);
    }
    found.push({ name: called[place] ?? String(found.length), at });
  }
  return found;
}

const { events } = JSON.parse(require("node:fs").readFileSync(0, "utf8"));
const { platform } = events.find(({ type }) => type === "SIMULATION_BEGINS").data;
const nodes = platform.pools.flatMap((pool) => numbers(pool.nodes)).length;
places(platform.topology ?? { kind: "flat" }, nodes).forEach(({ name, at }, node) => {
  console.log([node, name, ...at].join(" "));
});
