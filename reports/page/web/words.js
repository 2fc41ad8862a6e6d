// Formats of numbers, durations and dates, and the ticks of time axes.

export const MINUTE = 60;
export const HOUR = 3600;
export const DAY = 86400;

/** {least and most decimals: number format}, because creating a format is much slower than using it */
const formats = new Map();

/** @type {(number: Unsure) => number is number} */
const finite = (number) => Number.isFinite(number);

export const words = {
  /** A number in the locale's format, with at least `least` and at most `most` decimals. @type {(number: number, least: number, most: number) => string} */
  local(number, least, most) {
    const key = 32 * least + most;
    let format = formats.get(key);
    if (!format) formats.set(key, format = new Intl.NumberFormat("en-GB", {minimumFractionDigits: least, maximumFractionDigits: most}));
    return format.format(number);
  },

  /** A duration in its two largest units, such as "3 h 12 min". @type {(seconds: Unsure) => string} */
  duration(seconds) {
    if (!finite(seconds)) return "–";
    const sign = seconds < 0 ? "−" : "";
    const length = Math.abs(seconds);
    if (length < MINUTE) return `${sign}${length === 0 ? 0 : Number(length.toPrecision(3))} s`;
    const whole = Math.round(length);
    for (const [unit, name, part, partName] of /** @type {[number, string, number, string][]} */ ([[DAY, "d", HOUR, "h"], [HOUR, "h", MINUTE, "min"], [MINUTE, "min", 1, "s"]])) {
      if (whole < unit) continue;
      const rest = Math.floor((whole % unit) / part);
      const count = words.whole(Math.floor(whole / unit));
      return `${sign}${count} ${name}` + (rest ? ` ${rest} ${partName}` : "");
    }
    return "";
  },

  /** A duration with its sign. @type {(seconds: Unsure) => string} */
  change(seconds) {
    return finite(seconds) && seconds > 0 ? `+${words.duration(seconds)}` : words.duration(seconds);
  },

  /** A duration in one unit, such as "4.2 d", for narrow places. @type {(seconds: Unsure) => string} */
  brief(seconds) {
    if (!finite(seconds)) return "–";
    const length = Math.abs(seconds);
    const [unit, name] = length >= DAY ? [DAY, "d"] : length >= HOUR ? [HOUR, "h"] : length >= MINUTE ? [MINUTE, "min"] : [1, "s"];
    const count = length / unit;
    return `${seconds < 0 ? "−" : ""}${words.local(count, 0, count < 10 ? 1 : 0)} ${name}`;
  },

  /** @type {(number: number | null) => string} */
  whole(number) {
    if (number === null) return "–";
    const whole = Math.round(number);
    return whole >= 0 && whole < 1000 ? `${whole}` : words.local(whole, 0, 0);
  },

  /** A number with `decimals` decimals and the locale's separators. @type {(number: Unsure, decimals: number) => string} */
  decimal(number, decimals) {
    if (!finite(number)) return "–";
    return words.local(number, decimals, decimals);
  },

  /** A number with about four significant digits. @type {(number: Unsure) => string} */
  figure(number) {
    if (!finite(number)) return "–";
    const size = Math.abs(number);
    return words.decimal(number, size >= 1000 || Number.isInteger(number) ? 0 : size >= 10 ? 1 : 2);
  },

  /** A number of things, such as "1 unit" or "1,200 cores". @type {(number: number, what: string) => string} */
  count(number, what) {
    return `${words.tick(number)} ${what}${number === 1 ? "" : "s"}`;
  },

  /** An amount of a resource of nodes, such as "4 cores", "1.5 GiB memory" or "2 nvme". @type {(name: string, amount: number) => string} */
  amount(name, amount) {
    if (name === "cores") return words.count(amount, "core");
    if (name === "gpu") return words.count(amount, "GPU");
    return `${words.partOf(name, amount)} ${name}`;
  },

  /** An amount of a resource before its whole, such as "4" of "16 cores" or "1.5 GiB" of "64 GiB memory". @type {(name: string, amount: number) => string} */
  partOf(name, amount) {
    if (name !== "memory") return words.tick(amount);
    const [step, unit] = amount >= 1048576 ? [1048576, "TiB"] : amount >= 1024 ? [1024, "GiB"] : [1, "MiB"];
    return `${words.tick(amount / step)} ${unit}`;
  },

  /** The name of a resource in a text. @type {(name: string) => string} */
  resource(name) {
    return name === "gpu" ? "GPUs" : name;
  },

  /** A number as the label of a tick. @type {(number: number) => string} */
  tick(number) {
    return words.local(number, 0, 2);
  },

  /** @type {(share: Unsure, decimals?: number) => string} */
  percent(share, decimals = 1) {
    return !finite(share) ? "–" : `${words.decimal(100 * share, decimals)} %`;
  },

  /** A final state in plain words. @type {(name: string) => string} */
  state(name) {
    /** @type {Record<string, string>} */
    const known = {
      COMPLETED_SUCCESSFULLY: "completed", COMPLETED_FAILED: "failed", COMPLETED_WALLTIME_REACHED: "killed at walltime",
      COMPLETED_KILLED: "killed", REJECTED: "rejected", RUNNING: "running at the end",
    };
    return known[name] || name.toLowerCase().replaceAll("_", " ");
  },
};

/** The clock of a run: shows seconds since time 0 as dates if the log gives the date of time 0, else as days. */
export class Clock {
  /** @param {Unsure} epoch @param {string | null} timezone */
  constructor(epoch, timezone) {
    this.dated = epoch !== null && epoch !== undefined;
    this.epoch = epoch ?? 0;
    /** @type {string} */
    this.zone = timezone || "UTC";
    this.offsets = new Map();
    const parts = () => new Intl.DateTimeFormat("en-GB", {
      timeZone: this.zone, year: "numeric", month: "2-digit", day: "2-digit", hour: "2-digit", minute: "2-digit",
      second: "2-digit", hourCycle: "h23",
    });
    try {
      this.parts = parts();
    } catch {
      this.zone = "UTC";
      this.parts = parts();
    }
  }

  /** Seconds that local time is ahead of Unix time; assumed to change only at full hours. @type {(unix: number) => number} */
  offset(unix) {
    const hour = Math.floor(unix / HOUR);
    if (!this.offsets.has(hour)) {
      const said = Object.fromEntries(this.parts.formatToParts(hour * HOUR * 1000).map((part) => [part.type, Number(part.value)]));
      const wall = Date.UTC(said.year, said.month - 1, said.day, said.hour, said.minute, said.second) / 1000;
      this.offsets.set(hour, wall - hour * HOUR);
    }
    return this.offsets.get(hour);
  }

  /** Local time as a Date whose UTC parts are the local parts. @type {(time: number) => Date} */
  wall(time) {
    const unix = time + this.epoch;
    return new Date((unix + (this.dated ? this.offset(unix) : 0)) * 1000);
  }

  /** A point in time, to the second. @type {(time: number) => string} */
  say(time) {
    if (!Number.isFinite(time)) return "–";
    const text = this.wall(time).toISOString();
    if (this.dated) return `${text.slice(0, 10)} ${text.slice(11, 19)}`;
    return `day ${Math.floor(time / DAY)}, ${text.slice(11, 19)}`;
  }

  /** At most `most` ticks between two times, and their labels. @type {(from: number, to: number, most: number) => Ticks} */
  ticks(from, to, most) {
    const steps = [1, 2, 5, 10, 30, MINUTE, 2 * MINUTE, 5 * MINUTE, 10 * MINUTE, 30 * MINUTE, HOUR, 2 * HOUR, 3 * HOUR,
      6 * HOUR, 12 * HOUR, DAY, 2 * DAY, 7 * DAY, 14 * DAY];
    const least = (to - from) / Math.max(1, most);
    const step = steps.find((one) => one >= least);
    if (step === undefined) return this.dated ? this.months(from, to, least) : this.days(from, to, least);
    const unix = this.epoch;
    const ahead = this.dated ? this.offset(unix + from) : 0;
    // weeks begin on a Monday: 1970-01-05
    const shift = unix + ahead - (this.dated && step >= 7 * DAY ? 4 * DAY : 0);
    const found = [];
    for (let at = Math.ceil((from + shift) / step) * step - shift; at <= to; at += step) {
      const unixNow = unix + at;
      found.push(this.dated && step >= HOUR ? at - (this.offset(unixNow) - ahead) : at);
    }
    return {at: found, label: (time) => this.label(time, step)};
  }

  /** @type {(from: number, to: number, least: number) => Ticks} */
  days(from, to, least) {
    const power = 10 ** Math.floor(Math.log10(least / DAY));
    const step = [1, 2, 5, 10].map((one) => one * power * DAY).find((one) => one >= least) ?? 10 * power * DAY;
    const found = [];
    for (let at = Math.ceil(from / step) * step; at <= to; at += step) found.push(at);
    return {at: found, label: (time) => `${words.whole(time / DAY)} d`};
  }

  /** @type {(from: number, to: number, least: number) => Ticks} */
  months(from, to, least) {
    const step = [1, 2, 3, 6, 12, 24, 60, 120].find((one) => one * 30 * DAY >= least) || 240;
    const begin = this.wall(from);
    const found = [];
    for (let month = Math.floor((begin.getUTCFullYear() * 12 + begin.getUTCMonth()) / step) * step; ; month += step) {
      const wall = Date.UTC(Math.floor(month / 12), month % 12, 1) / 1000;
      const at = wall - this.offset(wall) - this.epoch;
      if (at > to) break;
      if (at >= from) found.push(at);
    }
    return {at: found, label: (time) => this.label(time, step >= 12 ? 365 * DAY : 30 * DAY)};
  }

  /** @type {(time: number, step: number) => string} */
  label(time, step) {
    const date = this.wall(time + 0.0005);
    const text = date.toISOString();
    if (!this.dated) {
      if (step >= DAY) return `${words.whole(time / DAY)} d`;
      const hour = text.slice(11, step < MINUTE ? 19 : 16);
      return hour === "00:00" ? `${words.whole(time / DAY)} d` : hour;
    }
    const month = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"][date.getUTCMonth()];
    if (step >= 365 * DAY) return `${date.getUTCFullYear()}`;
    if (step >= 28 * DAY) return date.getUTCMonth() === 0 ? `${date.getUTCFullYear()}` : month;
    if (step >= DAY || text.slice(11, 19) === "00:00:00") return `${date.getUTCDate()} ${month}`;
    return text.slice(11, step < MINUTE ? 19 : 16);
  }
}
