// Inputs, options and versions, which suffice to repeat the run, and digests of the outputs.
import {addSection, make, makeTable} from "./elements.js";
import {words} from "./words.js";

/** @param {State} state @param {Facts} facts */
export function drawAbout(state, facts) {
  const section = addSection("about", "What ran", "Inputs, options and versions of each run, and the digests of its outputs.");
  /** @type {(value: any) => string} */
  const text = (value) => (typeof value === "object" ? JSON.stringify(value) : `${value}`);
  /** @type {(value: any) => boolean} */
  const said = (value) => value !== null && value !== false && value !== "" && !(typeof value === "object" && !Object.keys(value).length);
  for (const run of state.runs) {
    const {config, command, summary, machine} = run.facts;
    if (state.runs.length > 1) section.append(make("h3", {}, run.name));
    const rows = [["Folder", run.facts.folder], ["Scheduler", `${run.facts.scheduler} ${config.scheduler.version || ""}`], ["Run", config.run_id],
      ...Object.entries(config.workloads).map(([prefix, one]) => [`Workload ${prefix}`, `${one.name}: ${words.whole(one.jobs)} jobs from ${one.source}, SHA-256 ${one.sha256}`]),
      ...Object.entries(config.dropped || {}).map(([reason, count]) => ["Left out", `${words.whole(count)} jobs: ${reason}`]),
      ["Machine", `${machine.name}${machine.description ? `, ${machine.description}` : ""}`],
      ...machine.pools.map((pool) => ["Pool", `${pool.name}: ${words.whole(pool.nodes)} nodes of ${words.whole(pool.units)} ${pool.unit}${pool.units > 1 ? "s" : ""}`]),
      ["Ended", summary ? `${summary.reason}${summary.message ? `: ${summary.message}` : ""}` : "no summary: the run is not complete"],
      ["Versions", Object.entries(config.versions || {}).map(([name, version]) => `${name} ${version}`).join(", ")]];
    section.append(makeTable(`What ran: ${run.name}`, [{title: "", text: true}, {title: "", text: true}], rows, {fixed: true, hideCaption: true}));
    if (command) {
      const options = Object.entries(command).filter(([name, value]) => name !== "files" && said(value));
      section.append(make("details", {}, make("summary", {}, "Options (RunSpec)"),
        makeTable(`Options: ${run.name}`, [{title: "Option", text: true}, {title: "Value", text: true}], options.map(([name, value]) => [name, text(value)]), {fixed: true, hideCaption: true})));
    }
    const digests = [...Object.entries(command?.files || {}).map(([name, digest]) => ["read", name, digest]), ...["inputs", "results"].map((name) => ["all", name, summary?.[`${name}_sha256`]]).filter((one) => one[2]), ...Object.entries(summary?.sha256 || {}).map(([name, digest]) => ["written", name, digest])];
    section.append(make("details", {}, make("summary", {}, "Digests of inputs and outputs (SHA-256)"),
      makeTable(`Digests: ${run.name}`, [{title: "", text: true}, {title: "File", text: true}, {title: "SHA-256", text: true}], digests, {fixed: true, hideCaption: true})));
  }
  section.append(make("p", {class: "keys"}, `Made by pipistrelle report ${facts.version}. Charts by uPlot 1.6.32, © 2022 Leon Sorokin, MIT licence.`));
}
