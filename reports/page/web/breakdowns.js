"use strict";
// What failed, and what that cost: failures and maintenance over time, what the units' time was spent on, the worst nodes.

const SPENT = [["useful", "useful work"], ["unsaved", "work cut off by a walltime or a kill"], ["lost", "work lost to failures"], ["dumping", "dumps"], ["reading", "reading dumps"],
  ["spare", "spares that were idle"], ["down", "down within an allocation"], ["waiting", "waiting for repairs"], ["overhead", "prologue and epilogue"]];

function drawBreakdowns(state) {
  const runs = state.runs.filter((run) => run.failures);
  if (!runs.length) return () => {};
  const make = elements.make;
  const section = elements.section("failures", "Failures and dumps", "What the units' time was spent on, which nodes were down, and what failures cost the jobs.");
  const redraws = runs.map((run) => {
    const part = make("div");
    section.append(runs.length > 1 ? make("h3", {}, run.name) : "", part);
    const {attempts, outages, nodes} = run.failures, told = run.facts.summary?.reliability;
    const totals = attempts && Object.fromEntries(Object.entries(attempts).map(([name, values]) => [name, figures.sum(values)]));
    const downtime = (planned) => figures.sum(outages.node.map((_, i) => ((outages.planned[i] ? 1 : 0) === planned ? outages.up[i] - outages.down[i] : 0)));
    const count = (planned) => outages.planned.filter((one) => (one ? 1 : 0) === planned).length;
    const facts = [];
    if (told) facts.push(["Node failures", words.whole(told.node_failures), told.node_failures], ["Availability of nodes", words.percent(told.availability, 3), told.availability],
      ["Attempts", words.whole(told.attempts), told.attempts], ["Attempts ended by outages", words.whole(told.interrupted_attempts), told.interrupted_attempts],
      ["Failures that jobs survived", words.whole(told.survived_failures), told.survived_failures], ["Jobs given up", words.whole(told.given_up), told.given_up]);
    if (outages) facts.push(["Outages by failures", words.whole(count(0)), count(0)], ["Node-hours down by failures", words.figure(downtime(0) / HOUR), downtime(0) / HOUR],
      ["Outages by maintenance", words.whole(count(1)), count(1)], ["Node-hours in maintenance", words.figure(downtime(1) / HOUR), downtime(1) / HOUR]);
    if (totals) facts.push(["Dumps completed", words.whole(totals.dumps), totals.dumps], ["Dumps read", words.whole(totals.reads), totals.reads]);
    const figuresTable = elements.table(`Failures: ${run.name}`, [{title: "Figure", text: true}, {title: "The run"}], facts.map(([name, show, value]) => [name, {show, value}]), {fixed: true, hideCaption: true});
    const grid = make("div", {class: "grid"}, figuresTable);
    part.append(grid);
    if (totals) {
      const whole = figures.sum(SPENT.map(([name]) => totals[name]));
      grid.append(elements.table(`Unit-hours by what they were spent on: ${run.name}`, [{title: "Spent on", text: true}, {title: "Unit-hours"}, {title: "Share"}], SPENT.map(([name, title]) => {
        const bar = make("span", {class: "share"}, make("i"), words.percent(totals[name] / whole, 2));
        bar.firstChild.style.width = `${(90 * totals[name]) / whole}px`;
        return [title, {show: words.figure(totals[name] / HOUR), value: totals[name] / HOUR}, {show: bar, value: totals[name] / whole}];
      }), {fixed: true, hideCaption: true}));
    }
    if (nodes) {
      const order = Array.from(nodes.node.keys()).sort((one, other) => nodes.failures[other] - nodes.failures[one] || nodes.time_down[other] - nodes.time_down[one]);
      const table = elements.table("Nodes that failed most", [{title: "Node", text: true}, {title: "Pool", text: true}, {title: "Failures"}, {title: "Down"}, {title: "In maintenance"}, {title: "Busy"}],
        order.filter((at) => nodes.failures[at] || nodes.time_in_maintenance[at]).map((at) => [{show: words.whole(nodes.node[at]), value: nodes.node[at]}, nodes.pool.names[nodes.pool.of[at]],
          ...["failures"].map((name) => ({show: words.whole(nodes[name][at]), value: nodes[name][at]})),
          ...["time_down", "time_in_maintenance", "time_busy"].map((name) => ({show: words.duration(nodes[name][at]), value: nodes[name][at]}))]), {most: 10});
      table.id = `nodes-${run.number}`;
      part.append(table);
    }
    const redraw = [];
    if (outages) redraw.push(curve(state, part, run, "down", "Nodes out of service", "nodes", [["by failures", 0], ["in maintenance", 1]], (planned, from, to) =>
      figures.overTime(outages.down, outages.up, () => 1, (i) => (outages.planned[i] ? 1 : 0) === planned, from, to, BINS)));
    if (attempts) redraw.push(curve(state, part, run, "lost", "Work lost to failures, by when the attempt ended", "unit-h", [["lost", "lost"]], (name, from, to) => {
      const bins = new Array(BINS).fill(0);
      for (let row = 0; row < run.rows; row++) {
        const at = Math.floor(((run.end[row] - from) / (to - from)) * BINS);
        if (at >= 0 && at < BINS && run.chosen[run.jobOf[row]]) bins[at] += attempts[name][row] / HOUR;
      }
      return bins;
    }));
    return redraw;
  });
  return () => redraws.flat().forEach((redraw) => redraw());
}

/** A chart of some curves over the part of the time that is shown. */
function curve(state, part, run, id, title, unit, curves, of) {
  const make = elements.make;
  const holder = make("div", {class: "chart", id: `chart-${id}-${run.number}`, role: "img", "aria-label": title});
  let chart = null, data = null;
  const table = elements.behind("As a table", () => curveTable(`${title} (${unit})`, "From", data, curves.map(([label]) => label), (x) => run.clock.say(x - (state.view.to - state.view.from) / BINS / 2)));
  part.append(make("figure", {}, make("figcaption", {}, `${title} (${unit})`), holder, table));
  const draw = () => {
    const {from, to} = state.view;
    table.open = false;
    data = [Array.from({length: BINS}, (_, bin) => from + ((bin + 0.5) * (to - from)) / BINS), ...curves.map(([, key]) => of(key, from, to))];
    if (chart) {
      chart.setData(data);
      return;
    }
    const ticks = (drawn) => run.clock.ticks(state.view.from, state.view.to, drawn.width / 90);
    chart = chartOf(holder, {data, unit, labelX: "Time", sayX: (value) => run.clock.say(value), curves: curves.map(([label], at) => ({label, colour: at + 1})),
      range: () => [state.view.from, state.view.to], splits: (drawn) => ticks(drawn).at, values: (drawn, splits) => splits.map(ticks(drawn).label), cursor: {sync: {key: "time"}}, dragged: (low, high) => state.setView(low, high)});
  };
  state.onView.push(calmly(draw, 80));
  state.onFilter.push(draw);
  draw();
  return () => {
    chart.destroy();
    chart = null;
    draw();
  };
}
