// What the reader has selected (jobs, interval, colours), and the listeners to changes.

export const LABELS = ["user", "group", "account", "queue", "qos"];

export class State {
  /** @param {Run[]} runs */
  constructor(runs) {
    this.runs = runs;
    this.whole = {from: Math.min(...runs.map((run) => run.from)), to: Math.max(...runs.map((run) => run.to))};
    this.view = {...this.whole};
    /** @type {Record<string, any>} */
    this.filter = {least: null, most: null};
    this.colour = LABELS.find((label) => runs.some((run) => run.labels[label])) || "size";
    /** the resource by which lanes of shared nodes are drawn, and what jobs are measured in */
    this.resource = "cores";
    this.unit = runs.every((run) => run.takes) ? "core" : "unit";
    this.statistic = "mean";
    /** @type {(() => void)[]} */
    this.onFilter = [];
    /** @type {(() => void)[]} */
    this.onView = [];
    /** @type {(() => void)[]} */
    this.onColour = [];
    /** @type {Map<string, string[]>} the names that jobs are coloured by, for each way to colour them */
    this.ranked = new Map();
    this.choose();
  }

  get filtered() {
    return Object.values(this.filter).some((value) => value !== null && value !== undefined);
  }

  /** Apply the filter: run.chosen[job] is 1 for selected jobs, run.count their number, run.ended those that ended. */
  choose() {
    for (const run of this.runs) {
      const wanted = LABELS.filter((label) => typeof this.filter[label] === "string").map((label) => {
        const column = run.labels[label];
        return {column, place: column ? column.names.indexOf(this.filter[label]) : -1};
      });
      const least = this.filter.least ?? 0, most = this.filter.most ?? Infinity;
      const ended = new Uint32Array(run.jobs);
      let count = 0;
      run.count = 0;
      run.chosen = new Uint8Array(run.jobs);
      for (let job = 0; job < run.jobs; job++) {
        const row = run.job.first[job];
        const fits = run.job.size[job] >= least && run.job.size[job] <= most
          && wanted.every(({column, place}) => column && column.of[row] === place);
        run.chosen[job] = fits ? 1 : 0;
        run.count += run.chosen[job];
        if (fits && run.job.ended[job]) ended[count++] = job;
      }
      run.ended = ended.slice(0, count);
    }
  }

  /** @type {(changes: Record<string, any>) => void} */
  setFilter(changes) {
    Object.assign(this.filter, changes);
    this.choose();
    for (const told of this.onFilter) told();
  }

  clearFilter() {
    for (const name of Object.keys(this.filter)) this.filter[name] = null;
    this.setFilter({});
  }

  /** Show an interval, clipped to the run and at least ten seconds long. @type {(from: number, to: number) => void} */
  setView(from, to) {
    const length = Math.min(Math.max(to - from, 10), this.whole.to - this.whole.from);
    const middle = (from + to) / 2;
    const begin = Math.min(Math.max(middle - length / 2, this.whole.from), this.whole.to - length);
    this.view = {from: begin, to: begin + length};
    for (const told of this.onView) told();
  }

  /** Zoom by a factor around a time; below 1 zooms in. @type {(factor: number, around?: number) => void} */
  zoom(factor, around = (this.view.from + this.view.to) / 2) {
    const {from, to} = this.view;
    this.setView(around - (around - from) * factor, around + (to - around) * factor);
  }

  /** Move by a share of the interval shown. @type {(share: number) => void} */
  pan(share) {
    const by = (this.view.to - this.view.from) * share;
    this.setView(this.view.from + by, this.view.to + by);
  }

  /** @type {(name: string) => void} */
  setColour(name) {
    this.colour = name;
    for (const told of this.onColour) told();
  }
}

/** Debounce a function until the next frame, or for `pause` milliseconds. @type {(work: () => void, pause?: number) => () => void} */
export function calmly(work, pause = 0) {
  let waiting = 0;
  return () => {
    if (pause) {
      clearTimeout(waiting);
      waiting = setTimeout(work, pause);
    } else if (!waiting) {
      waiting = requestAnimationFrame(() => {
        waiting = 0;
        work();
      });
    }
  };
}
