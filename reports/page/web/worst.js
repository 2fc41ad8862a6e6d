// The worst-served jobs, each with the answer of `pipistrelle explain job`.
import {addSection, capital, cellOf, make, makeTable} from "./elements.js";
import {jobLink} from "./gantt.js";
import {words} from "./words.js";

/** @param {State} state */
export function drawWorst(state) {
  const section = addSection("worst", "Worst-served jobs", "The jobs with the longest waits and those with the largest slowdowns, each with the answer of pipistrelle explain job.");
  for (const run of state.runs) {
    const told = run.facts.worst;
    if (state.runs.length > 1) section.append(make("h3", {}, run.name));
    if (!told.jobs.length) {
      section.append(make("p", {}, "No job waited."));
      continue;
    }
    const answers = new Map(told.jobs.map((one) => [one.job, one]));
    if (told.how === "outputs") {
      section.append(make("p", {class: "keys"}, `These answers are from the outputs alone${told.why_not ? `: ${told.why_not}` : ""}. Use --explain to repeat the run, and the answers show what the scheduler saw.`));
    }
    /** @type {(title: string, ids: string[]) => void} */
    const list = (title, ids) => {
      const rows = ids.flatMap((id) => {
        const one = answers.get(id);
        if (!one) return [];
        const job = one.place;
        const more = make("details", {}, make("summary", {}, one.answer), make("ul", {},
          Object.entries(one.limits).map(([limit, seconds]) => make("li", {}, `${words.duration(seconds)}: ${limit}`)),
          one.holders.length ? make("li", {}, `most ${run.takes ? "nodes" : "units"} were held by ${one.holders.map(([holder, size]) => `${holder} (${words.whole(size)})`).join(", ")}`) : null,
          one.why ? make("li", {}, `the scheduler's reason: ${one.why}`) : null, one.remarks.map((text) => make("li", {}, text))));
        return [[{show: jobLink(id, [run, job]), value: id}, cellOf(words.duration, run.job.wait[job]), cellOf(words.figure, run.job.bounded[job]),
          cellOf(words.whole, run.job.size[job]), cellOf(words.duration, run.job.execution[job]), run.label("user", run.job.first[job]), {show: more, value: one.answer}]];
      });
      const table = makeTable(title, [{title: "Job", text: true}, {title: "Wait"}, {title: "Bounded slowdown"}, {title: `${capital(run.unit)}s`}, {title: "Ran"}, {title: "User", text: true}, {title: "Why", text: true}], rows);
      table.classList.add("answers");
      section.append(table);
    };
    list("Longest waits", told.by_wait);
    list("Largest slowdowns", told.by_slowdown);
  }
}
