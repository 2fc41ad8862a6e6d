"use strict";
// The jobs that were served worst, each with why: what `pipistrelle explain` answers.

function drawWorst(state) {
  const make = elements.make;
  const section = elements.section("worst", "Served worst", "The jobs that waited longest and those that were slowed down most, each with what pipistrelle explain answers.");
  for (const run of state.runs) {
    const told = run.facts.worst;
    if (state.runs.length > 1) section.append(make("h3", {}, run.name));
    if (!told.jobs.length) {
      section.append(make("p", {}, "No job waited."));
      continue;
    }
    const answers = new Map(told.jobs.map((one) => [one.job, one]));
    if (told.how === "outputs") {
      section.append(make("p", {class: "keys"}, `These answers are from the outputs alone${told.why_not ? `: ${told.why_not}` : ""}. With --explain the run is repeated, and they say what the scheduler saw.`));
    }
    const list = (title, ids) => {
      const rows = ids.map((id) => {
        const one = answers.get(id), job = one.place, row = run.job.first[job];
        const show = make("button", {type: "button", class: "link", title: "Show it on the machine", onclick: () => {
          run.gantt.find(job);
          document.getElementById("machine").scrollIntoView();
        }}, id);
        const more = make("details", {}, make("summary", {}, one.answer), make("ul", {},
          Object.entries(one.limits).map(([limit, seconds]) => make("li", {}, `${words.duration(seconds)}: ${limit}`)),
          one.holders.length ? make("li", {}, `most was held by ${one.holders.map(([holder, size]) => `${holder} (${words.whole(size)})`).join(", ")}`) : null,
          one.why ? make("li", {}, `the scheduler says: ${one.why}`) : null, one.remarks.map((text) => make("li", {}, text))));
        return [{show, value: id}, {show: words.duration(run.job.wait[job]), value: run.job.wait[job]}, {show: words.figure(run.job.bounded[job]), value: run.job.bounded[job]},
          {show: words.whole(run.job.size[job]), value: run.job.size[job]}, {show: words.duration(run.job.execution[job]), value: run.job.execution[job]}, run.label("user", row), {show: more, value: one.answer}];
      });
      const table = elements.table(title, [{title: "Job", text: true}, {title: "Wait"}, {title: "Bounded slowdown"}, {title: "Units"}, {title: "Ran"}, {title: "User", text: true}, {title: "Why", text: true}], rows);
      table.classList.add("answers");
      section.append(table);
    };
    list("Waited longest", told.by_wait);
    list("Slowed down most", told.by_slowdown);
  }
}
