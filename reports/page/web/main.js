// The page: its sections in order, and how they are redrawn.
import {drawAbout} from "./about.js";
import {drawBreakdowns} from "./breakdowns.js";
import {drawCompare} from "./compare.js";
import {readRuns} from "./data.js";
import {drawDistributions} from "./distributions.js";
import {byId, make} from "./elements.js";
import {drawEstimates} from "./estimates.js";
import {drawGantt} from "./gantt.js";
import {drawGroups} from "./groups.js";
import {drawHeat} from "./heat.js";
import {drawSeries} from "./series.js";
import {calmly, State} from "./state.js";
import {drawFilter, drawHead, drawSummary} from "./summary.js";
import {drawNetworks} from "./torus.js";
import {drawWorst} from "./worst.js";

/** Let the browser paint and handle input before the next section is drawn. */
function breath() {
  return new Promise((go) => setTimeout(go));
}

async function main() {
  const {facts, bytes, runs} = await readRuns();
  const state = new State(runs);
  const nav = make("nav", {"aria-label": "Parts of the page"});
  drawHead(state, facts);
  byId("top").append(nav);
  drawFilter(state);
  drawSummary(state);
  const redraws = [drawSeries(state), drawGantt(state)];
  document.documentElement.dataset.open = "yes";  // the first screen is drawn; the rest follows section by section
  /** @type {(() => (() => void) | void)[]} */
  const below = [() => drawNetworks(state, bytes), () => drawDistributions(state), () => drawHeat(state), () => drawGroups(state), () => drawBreakdowns(state),
    () => drawCompare(state, facts, bytes), () => drawEstimates(state, bytes), () => drawWorst(state), () => drawAbout(state, facts)];
  for (const draw of below) {
    await breath();
    const again = draw();
    if (again) redraws.push(again);
  }
  const parts = [...document.querySelectorAll("main > section")];
  nav.append(...parts.map((part) => make("a", {href: `#${part.id}`}, part.querySelector("h2")?.textContent)));
  const redraw = calmly(() => redraws.forEach((one) => one()), 60);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
  let width = innerWidth;
  addEventListener("resize", () => {
    if (width === innerWidth) return;
    width = innerWidth;
    redraw();
  });
  addEventListener("beforeprint", () => document.querySelectorAll("#about details, #worst details").forEach((one) => {
    /** @type {HTMLDetailsElement} */ (one).open = true;
  }));
  document.documentElement.dataset.ready = "yes";
}

main().catch((error) => {
  byId("main").append(make("p", {class: "note", role: "alert"}, `This page cannot be drawn (${error.message}). It needs a browser of 2023 or later.`));
  throw error;
});
