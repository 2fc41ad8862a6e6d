// Failures and their cost: outages over time, use of the units' time, the worst nodes.
import {addSection, cellOf, make, makeBehind, makeFigure, makeTable, shareBar} from "./elements.js";
import {figures} from "./figures.js";
import {BINS, chartOf, curveTable, middles, timeAxis} from "./series.js";
import {calmly} from "./state.js";
import {HOUR, words} from "./words.js";

const SPENT = /** @type {[string, string][]} */ ([["useful", "useful work"], ["unsaved", "work cut off by a walltime or a kill"], ["lost", "work lost to failures"], ["dumping", "dumps"], ["reading", "reading dumps"],
  ["spare", "spares that were idle"], ["down", "down within an allocation"], ["waiting", "waiting for repairs"], ["overhead", "prologue and epilogue"]]);

/** @type {(state: State) => () => void} */
export function drawBreakdowns(state) {
  const runs = state.runs.flatMap((run) => (run.failures ? [{run, failures: run.failures}] : []));
  if (!runs.length) return () => {};
  const section = addSection("failures", "Failures and dumps", "How the units' time was spent, which nodes were down, and what failures cost the jobs.");
  const redraws = runs.map(({run, failures}) => {
    const part = make("div");
    section.append(runs.length > 1 ? make("h3", {}, run.name) : "", part);
    const {attempts, outages, nodes} = failures, told = run.facts.summary?.reliability;
    /** @type {Record<string, number> | null} */
    const totals = attempts && Object.fromEntries(Object.entries(attempts).map(([name, values]) => [name, figures.sum(values)]));
    /** @type {Cell[][]} */
    const facts = [];
    /** @type {(name: string, value: number, say?: (value: Unsure) => string) => void} */
    const add = (name, value, say) => void facts.push([name, cellOf(say ?? words.whole, value)]);
    if (told) {
      add("Node failures", told.node_failures);
      add("Availability of nodes", told.availability, (share) => words.percent(share, 3));
      add("Attempts", told.attempts);
      add("Attempts ended by outages", told.interrupted_attempts);
      add("Failures that jobs survived", told.survived_failures);
      add("Jobs given up", told.given_up);
    }
    if (outages) {
      const planned = Array.from(outages.planned, Boolean), length = (/** @type {boolean} */ kind) => figures.sum(planned.map((one, i) => (one === kind ? outages.up[i] - outages.down[i] : 0))) / HOUR;
      add("Outages by failures", planned.filter((one) => !one).length);
      add("Node-hours down by failures", length(false), words.figure);
      add("Outages by maintenance", planned.filter(Boolean).length);
      add("Node-hours in maintenance", length(true), words.figure);
    }
    if (totals) {
      add("Dumps completed", totals.dumps);
      add("Dumps read", totals.reads);
    }
    const figuresTable = makeTable(`Failures: ${run.name}`, [{title: "Figure", text: true}, {title: "The run"}], facts, {fixed: true, hideCaption: true});
    const grid = make("div", {class: "grid"}, figuresTable);
    part.append(grid);
    if (totals) {
      const whole = figures.sum(SPENT.map(([name]) => totals[name]));
      grid.append(makeTable(`Unit-hours by what they were spent on: ${run.name}`, [{title: "Spent on", text: true}, {title: "Unit-hours"}, {title: "Share"}], SPENT.map(([name, title]) => {
        const share = totals[name] / whole;
        return [title, cellOf(words.figure, totals[name] / HOUR), {show: shareBar(share, 2), value: share}];
      }), {fixed: true, hideCaption: true}));
    }
    if (nodes) {
      /** @type {number[]} */
      const order = Array.from(nodes.node.keys()).sort((one, other) => nodes.failures[other] - nodes.failures[one] || nodes.time_down[other] - nodes.time_down[one]);
      const table = makeTable("Nodes that failed most", [{title: "Node", text: true}, {title: "Pool", text: true}, {title: "Failures"}, {title: "Down"}, {title: "In maintenance"}, {title: "Busy"}],
        order.filter((at) => nodes.failures[at] || nodes.time_in_maintenance[at]).map((at) => [cellOf(words.whole, nodes.node[at]), nodes.pool.names[nodes.pool.of[at]], cellOf(words.whole, nodes.failures[at]),
          ...["time_down", "time_in_maintenance", "time_busy"].map((name) => cellOf(words.duration, nodes[name][at]))]), {most: 10});
      table.id = `nodes-${run.number}`;
      part.append(table);
    }
    const redraw = [];
    if (outages) redraw.push(curve(state, part, run, "down", "Nodes out of service", "nodes", ["by failures", "in maintenance"], (name, from, to) =>
      figures.overTime(outages.down, outages.up, () => 1, (i) => Boolean(outages.planned[i]) === (name === "in maintenance"), from, to, BINS)));
    if (attempts) redraw.push(curve(state, part, run, "lost", "Work lost to failures, by when the attempt ended", "unit-h", ["lost"], (name, from, to) => {
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

/**
 * A chart of curves over the time shown; `of` returns the values of a curve.
 * @type {(state: State, part: Element, run: Run, id: string, title: string, unit: string, names: string[], of: (name: string, from: number, to: number) => number[]) => () => void}
 */
function curve(state, part, run, id, title, unit, names, of) {
  const holder = make("div", {class: "chart", id: `chart-${id}-${run.number}`, role: "img", "aria-label": title});
  /** @type {UPlot | null} */
  let chart = null;
  /** @type {ChartData} */
  let data = [];
  const table = makeBehind("As a table", () => curveTable(`${title} (${unit})`, "From", data, names, (x) => run.clock.say(x - (state.view.to - state.view.from) / BINS / 2)));
  part.append(makeFigure(`${title} (${unit})`, holder, table));
  const draw = () => {
    const {from, to} = state.view;
    table.open = false;
    data = [middles(from, to, BINS), ...names.map((name) => of(name, from, to))];
    if (chart) {
      chart.setData(data);
      return;
    }
    chart = chartOf(holder, {...timeAxis(run.clock, () => state.view), data, unit, curves: names.map((label, at) => ({label, colour: at + 1})),
      cursor: {sync: {key: "time"}}, dragged: (low, high) => state.setView(low, high)});
  };
  state.onView.push(calmly(draw, 80));
  state.onFilter.push(draw);
  draw();
  return () => {
    chart?.destroy();
    chart = null;
    draw();
  };
}
