// The types that the scripts of the pages share. The type checker reads this file; browsers do not.

type Run = import("./data.js").Run;
type State = import("./state.js").State;
type Clock = import("./words.js").Clock;
type Unsure = number | null | undefined;
/** Red, green and blue. */
type Colour = number[];

type Child = Node | string | null | undefined;
/** The content of a cell, and its sort value. */
type Cell = Child | {show: Child, value: any};
interface TableColumn {title: string; text?: boolean; tip?: string}
interface TableOptions {most?: number; plain?: boolean; fixed?: boolean; hideCaption?: boolean}

// -- the facts of a page, as reports/page/page.py writes them -------------------------------------------------------

/** Where a column of numbers is among the bytes of the page. */
interface Place {at: number; n: number; width: number; scale: number; deltas?: boolean}
interface NamesPlace {names: string[]; of: Place}
interface TextsPlace {shapes: NamesPlace; numbers: Place}
type Places = Record<string, Place>;
interface Names {names: string[]; of: Uint32Array}
interface Pool {name: string; nodes: number; units: number; unit: string}
interface RunFacts {
  name: string;
  folder: string;
  scheduler: string;
  summary: Record<string, any> | null;
  goes_on: boolean;
  config: Record<string, any>;
  command: Record<string, any> | null;
  machine: {name: string, description: string, pools: Pool[], units: number};
  places: {kind: string, shape: number[], place: Place[], per_router: number} | null;
  epoch: number | null;
  timezone: string | null;
  until: number;
  columns: Record<string, any>;
  takes: TakesFacts | null;
  breakdowns: Breakdowns | null;
  worst: {how: string, why_not: string | null, jobs: Answer[], by_wait: string[], by_slowdown: string[]};
  estimates: Places | null;
  fairshare: {label: string, targets: Record<string, number>, how: string}[];
}
/** What attempts take of each node: `lines` per attempt; per line, intervals of nodes and the amount of each resource. */
interface TakesFacts {
  resources: {name: string, has: Place}[];
  cores: Place;
  lines: Place;
  intervals: Place;
  first: Place;
  length: Place;
  amounts: Place[];
}
/** A resource of the nodes: what each node has, and what each line of an attempt takes of each of its nodes. */
interface Resource {name: string; has: Float64Array; total: number; of: Float64Array}
/** Areas of a machine's rows: those of an attempt are firstOf[row] to firstOf[row + 1], each from low[k] up to top[k]. */
interface Lanes {firstOf: Uint32Array; low: ArrayLike<number>; top: ArrayLike<number>; bottom: number; above: number}
interface Breakdowns {
  outages: Record<string, any> | null;
  nodes: Record<string, any> | null;
  attempts: Places | null;
}
interface Answer {job: string; place: number; answer: string; limits: Record<string, number>; holders: [string, number][]; why: string | null; remarks: string[]}
interface Facts {version: string; runs: RunFacts[]; paired?: Paired}
interface Paired {
  jobs: number;
  same_workload: boolean;
  level: number;
  places: Place[];
  figures: {metric: string, runs: Record<string, number>[], against_first: Record<string, any>[]}[];
  first_decisions: ({number: number, first: {text: string} | null, second: {text: string} | null} | null)[] | null;
}

// -- a chart, as `chartOf` draws it with uPlot ----------------------------------------------------------------------

type ChartData = (Unsure[] | Float64Array)[];
interface UPlot {
  width: number;
  root: HTMLElement;
  select: {left: number, width: number};
  posToVal(place: number, scale: string): number;
  setSelect(select: object, fire: boolean): void;
  setData(data: ChartData): void;
  destroy(): void;
}
declare const uPlot: new (options: object, data: ChartData, holder: Element) => UPlot;
interface ChartOptions {
  data: ChartData;
  unit: string;
  height?: number;
  labelX: string;
  sayX: (x: number) => string;
  curves: {label: string, colour?: number, dash?: number[]}[];
  range: () => [number, number];
  rangeY?: ((chart: UPlot, least: Unsure, most: Unsure) => [number, number]) | null;
  splits: (chart: UPlot) => number[];
  values: (chart: UPlot, splits: number[]) => string[];
  cursor?: object;
  dragged?: (low: number, high: number) => void;
}
interface Ticks {at: number[]; label: (time: number) => string}

// -- the live page: its facts and states, as reports/live/page_view.py writes them -----------------------------------

interface LiveFacts {
  name: string;
  machine: string;
  epoch: number | null;
  timezone: string | null;
  nodes: number;
  shared: string[];
  kind: string;
  blocks: number[][][];
}
interface LiveState extends Record<"now" | "jobs" | "ended" | "running" | "held" | "units" | "down" | "queue" | "waiting_units" | "backlog" | "speed" | "wall" | "notice_rate" | "notices", number> {
  phase: string;
  token: string;
  reason: string;
  message: string | null;
  scheduler: string;
  keeps: string[];
  map: {each: number, lengths: number[], what: number[], used: number[]};
  colours: number[];
  resources: {name: string, total: number, held: number}[];
  past: number[][];
  on_machine: [string, number, number, number | null, string][];
  decisions: {time: number, what: string, job: string, size: number | null, units: string, refused: string | null, why: string}[];
  longest: {id: string, size: number, since: number, walltime: number | null, user: string, queue: string}[];
}
