// The live page of a run: it receives states as server-sent events and draws them.
import {LiveCurve} from "./live-curves.js";
import {LiveMap} from "./live-map.js";
import {addSection, byId, capital, make, makeTable, readFacts} from "../../page/web/elements.js";
import {Clock, words} from "../../page/web/words.js";

/** @type {LiveFacts} */
const facts = readFacts();
const clock = new Clock(facts.epoch, facts.timezone);
/** @type {Record<string, string>} */
const VERBS = {EXECUTE_JOB: "start", REJECT_JOB: "reject", KILL_JOB: "kill", PREEMPT_JOB: "preempt", REGISTER_JOB: "register", CALL_ME_LATER: "call later",
  CANCEL_CALL: "cancel call", SET_JOB_METADATA: "note", STOP: "stop"};
const AGAIN_S = 5;

/** An SVG element. @type {(tag: string, attributes: Record<string, string>) => Element} */
function svg(tag, attributes) {
  const found = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) found.setAttribute(name, value);
  return found;
}

/** A tile with a figure, its context, and optionally a bar for a share. */
class Tile {
  /** @param {string} id @param {string} title @param {Element} holder @param {boolean} share */
  constructor(id, title, holder, share = false) {
    this.big = make("p", {class: "big", id});
    this.of = make("p", {class: "keys"});
    this.bar = svg("rect", {width: "0", height: "6"});
    this.rest = svg("rect", {width: "0", height: "6", class: "down"});
    const meter = svg("svg", {class: "meter", viewBox: "0 0 100 6", preserveAspectRatio: "none", "aria-hidden": "true"});
    meter.append(this.bar, this.rest);
    holder.append(make("div", {class: "tile"}, make("h3", {}, title), this.big, this.of, share ? meter : null));
  }

  /** @type {(big: string, of: string, share?: number, down?: number) => void} */
  set(big, of, share = 0, down = 0) {
    this.big.textContent = big;
    this.of.textContent = of;
    this.bar.setAttribute("width", `${100 * share}`);
    this.rest.setAttribute("width", `${100 * down}`);
    this.rest.setAttribute("x", `${100 * (1 - down)}`);
  }
}

class LivePage {
  constructor() {
    this.status = make("p", {class: "note", id: "status", role: "status"}, "Connecting to the run…");
    this.clock = make("p", {class: "clock", id: "clock"});
    this.pause = make("button", {type: "button", id: "pause", "aria-pressed": "false", onclick: () => this.hold()}, "Pause");
    this.title = make("h1", {}, `${facts.name} on ${facts.machine}`);
    byId("top").append(this.title,
      make("p", {class: "lead", id: "lead"}, "A run in progress, read-only."), this.status, this.pause);
    const now = addSection("now", "Now", null), tiles = make("div", {class: "tiles"});
    now.append(this.clock, tiles);
    this.tiles = {
      jobs: new Tile("jobs", "Jobs ended", tiles, true), held: new Tile("held", facts.shared.length ? "Nodes with jobs" : "Units held by jobs", tiles, true),
      queue: new Tile("queue", "Queued jobs", tiles), backlog: new Tile("backlog", "Queued work", tiles),
      speed: new Tile("speed", "Speed", tiles), notices: new Tile("notices", "Notices per second", tiles),
    };
    this.resources = facts.shared.map((name) => new Tile(`held-${name}`, `${capital(words.resource(name))} held by jobs`, tiles, true));
    this.keeps = make("ul", {class: "keys", id: "keeps"});
    now.append(this.keeps);
    const machine = addSection("machine", "Machine", facts.blocks.length
      ? `The nodes in the rows of the network (${facts.kind}).` : "The nodes in order of number.");
    const figure = make("figure", {});
    machine.append(figure, make("ul", {class: "legend"}, [["free", "free"], ["busy", facts.shared.length ? "with jobs, in the colour of one; the height is the share of cores in use" : "in use, in one of eight colours"], ["gone", "down"]].map(
      ([name, text]) => make("li", {}, make("span", {class: `swatch ${name}`}), text))));
    this.map = new LiveMap(facts, figure);
    const time = addSection("time", "So far", "Samples over simulated time."), grid = make("div", {class: "grid three"});
    time.append(grid);
    this.curves = [
      ...(facts.shared.length ? facts.shared.map((name, at) => new LiveCurve(`Utilisation of ${words.resource(name)}`, 4 + at, (share) => words.percent(share), grid, 1, clock))
        : [new LiveCurve("Utilisation", 1, (share) => words.percent(share), grid, 1, clock)]),
      new LiveCurve("Queued jobs", 2, words.whole, grid, 1, clock),
      new LiveCurve("Queued work", 3, (work) => words.brief(work / (this.units || 1)), grid, 0, clock),
    ];
    this.decisions = make("div", {class: "small"});
    addSection("decisions", "Last decisions", "The last decisions, with the scheduler's reasons.").append(this.decisions);
    this.waiting = make("div", {class: "small"});
    addSection("waiting", "Waiting longest", "In order of submission; the scheduler may use another order.").append(this.waiting);
    this.held = false;
    this.units = 1;
    /** @type {string | null} */
    this.token = null;
    /** @type {LiveState | null} */
    this.last = null;
    /** whether no more states will come */
    this.done = false;
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.draw(this.last));
    addEventListener("resize", () => this.draw(this.last));
  }

  /** Pause or resume the display. */
  hold() {
    this.held = !this.held;
    this.pause.setAttribute("aria-pressed", `${this.held}`);
    this.pause.textContent = this.held ? "Resume" : "Pause";
    if (!this.held) this.draw(this.last);
  }

  /** @type {(phase: string, text: string) => void} */
  say(phase, text) {
    if (this.status.dataset.phase === phase && this.status.textContent === text) return;
    this.status.dataset.phase = phase;
    this.status.textContent = text;
  }

  listen() {
    const source = new EventSource("/events");
    source.onmessage = (event) => this.hear(JSON.parse(event.data), source);
    source.onerror = () => {
      if (this.done) return;
      this.say("lost", this.last
        ? `No connection to the run: its process has ended. The page shows its state at ${clock.say(this.last.now)}.`
        : "No connection to the run: it is over or has not begun.");
      if (source.readyState === EventSource.CLOSED) setTimeout(() => this.listen(), 1000 * AGAIN_S);
    };
  }

  /** @type {(state: LiveState, source: EventSource) => void} */
  hear(state, source) {
    if (state.token && this.token && state.token !== this.token) {
      this.done = true;
      source.close();
      this.say("other", "Another run is at this address now. ");
      this.status.append(make("button", {type: "button", class: "link", onclick: () => location.reload()}, "Show it"));
      return;
    }
    if (state.phase === "waiting") {
      if (!this.token) this.say("waiting", "Waiting for a scheduler.");
    } else {
      this.token = state.token;
      if (state.phase === "over") {
        this.done = true;
        source.close();
        this.pause.disabled = true;
        this.held = false;
        const why = `${String(state.reason).replaceAll("_", " ")}${state.message ? `: ${state.message}` : ""}`;
        const well = ["completed", "stopped", "horizon"].includes(state.reason);
        this.say(well ? "over" : "broken", `${well ? "The run has ended" : "The run was aborted"} (${why}).`);
      } else {
        this.say("running", "The run is in progress.");
      }
      if ("now" in state) {
        this.last = state;
        if (!this.held) this.draw(state);
      }
    }
    document.documentElement.dataset.phase = state.phase;
  }

  /** @param {LiveState | null} state */
  draw(state) {
    if (!state || !("now" in state)) return;
    this.units = state.units;
    const {tiles} = this;
    /** @type {(part: number, whole: number) => number} */
    const share = (part, whole) => (whole ? part / whole : 0);
    document.title = `${words.percent(share(state.ended, state.jobs), 0)} ${facts.name}, ${state.scheduler}`;
    this.title.textContent = `${facts.name} on ${facts.machine}, ${state.scheduler}`;
    this.clock.textContent = `${clock.say(state.now)}${clock.dated ? ` (${clock.zone})` : ""}`;
    tiles.jobs.set(words.whole(state.ended), `of ${words.whole(state.jobs)}; ${words.whole(state.running)} running`, share(state.ended, state.jobs));
    tiles.held.set(words.percent(share(state.held, state.units)),
      `${words.whole(state.held)} of ${words.whole(state.units)}${state.down ? `; ${words.whole(state.down)} down` : ""}`,
      share(state.held, state.units), share(state.down, state.units));
    state.resources.forEach(({name, total, held}, at) => {
      this.resources[at].set(words.percent(share(held, total)), `${words.partOf(name, held)} of ${words.amount(name, total)}`, share(held, total));
    });
    tiles.queue.set(words.whole(state.queue), `for ${words.count(state.waiting_units, facts.shared.length ? "node" : "unit")}`);
    tiles.backlog.set(words.brief(share(state.backlog, state.units)), "of the whole machine");
    tiles.speed.set(`${words.brief(state.speed)} per second`, `for ${words.duration(Math.round(state.wall))} so far`);
    tiles.notices.set(words.figure(state.notice_rate), `${words.whole(state.notices)} so far`);
    this.keeps.replaceChildren(...state.keeps.map((text) => make("li", {}, text)));
    this.map.paint(state);
    this.curves.forEach((curve) => curve.paint(state.past));
    this.fill(this.decisions, "The last decisions", [{title: "Time", text: true}, {title: "Decision", text: true}, {title: "Job", text: true}, {title: facts.shared.length ? "Nodes" : "Units"}, {title: "Which", text: true}, {title: "Why", text: true}],
      state.decisions.map((one) => [clock.say(one.time), VERBS[one.what] || one.what, one.job, one.size === null ? "–" : words.whole(one.size), one.units,
        one.refused ? `rejected: ${one.refused}` : one.why]));
    this.fill(this.waiting, "The oldest queued jobs", [{title: "Job", text: true}, {title: facts.shared.length ? "Nodes" : "Units"}, {title: "Wait"}, {title: "Walltime"}, {title: "User", text: true}, {title: "Queue", text: true}],
      state.longest.map((one) => [one.id, words.whole(one.size), words.brief(state.now - one.since), one.walltime === null ? "no limit" : words.brief(one.walltime), one.user, one.queue]));
  }

  /** Replace a table, unless the reader has the focus in it. @type {(holder: Element, caption: string, columns: TableColumn[], rows: Cell[][]) => void} */
  fill(holder, caption, columns, rows) {
    if (holder.contains(document.activeElement)) return;
    holder.replaceChildren(rows.length ? makeTable(caption, columns, rows, {hideCaption: true, fixed: true}) : make("p", {class: "keys"}, "None."));
  }
}

new LivePage().listen();
document.documentElement.dataset.ready = "yes";
