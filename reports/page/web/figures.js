// Statistics of columns: sums, quantiles, means over bins of time.

/** @type {Record<string, number>} */
const STATISTIC_SHARES = {median: 0.5, p95: 0.95, most: 1};

export const figures = {
  /** The sum of numbers, with compensated rounding errors (Neumaier 1974). @type {(values: ArrayLike<number>) => number} */
  sum(values) {
    let total = 0, lost = 0;
    for (let i = 0; i < values.length; i++) {
      const value = values[i], next = total + value;
      lost += Math.abs(total) >= Math.abs(value) ? total - next + value : value - next + total;
      total = next;
    }
    return total + lost;
  },

  /** @type {(values: ArrayLike<number>) => number | null} */
  mean(values) {
    return values.length ? figures.sum(values) / values.length : null;
  },

  /** A quantile of ascending values, by linear interpolation between order statistics, like the summary. @type {(sorted: ArrayLike<number>, share: number) => number | null} */
  quantile(sorted, share) {
    if (!sorted.length) return null;
    const place = share * (sorted.length - 1);
    const low = Math.floor(place), high = Math.min(low + 1, sorted.length - 1);
    return sorted[low] + (place - low) * (sorted[high] - sorted[low]);
  },

  /** One statistic of values that need not be sorted; null without any. @type {(values: ArrayLike<number>, name: string) => number | null} */
  statistic(values, name) {
    if (!values.length) return null;
    if (name === "mean") return figures.mean(values);
    return figures.quantile(Float64Array.from(values).sort(), STATISTIC_SHARES[name]);
  },

  /** A column's values at some indices. @type {(column: ArrayLike<number>, places: ArrayLike<number>) => Float64Array} */
  pick(column, places) {
    const found = new Float64Array(places.length);
    for (let i = 0; i < places.length; i++) found[i] = column[places[i]];
    return found;
  },

  /** The shares of ascending values at or below each bound. @type {(sorted: ArrayLike<number>, bounds: number[]) => Unsure[]} */
  below(sorted, bounds) {
    let at = 0;
    return bounds.map((bound) => {
      while (at < sorted.length && sorted[at] <= bound) at++;
      return sorted.length ? at / sorted.length : null;
    });
  },

  /**
   * The time-weighted mean in each of `count` equal bins of intervals from begin[i] to end[i] with weight[i], such as units
   * in use or queued jobs. Intervals for which `take(i)` is false do not count.
   * @type {(begin: ArrayLike<number>, end: ArrayLike<number>, weight: (i: number) => number, take: (i: number) => unknown, from: number, to: number, count: number) => number[]}
   */
  overTime(begin, end, weight, take, from, to, count) {
    const width = (to - from) / count;
    const partial = new Float64Array(count), whole = new Float64Array(count + 1);
    for (let i = 0; i < begin.length; i++) {
      const low = Math.max(begin[i], from), high = Math.min(end[i], to);
      if (!(high > low) || !take(i)) continue;
      const amount = weight(i);
      const first = Math.min(count - 1, Math.floor((low - from) / width));
      const last = Math.min(count - 1, Math.floor((high - from) / width));
      if (first === last) {
        partial[first] += amount * (high - low);
      } else {
        partial[first] += amount * (from + (first + 1) * width - low);
        partial[last] += amount * (high - from - last * width);
        whole[first + 1] += amount;
        whole[last] -= amount;
      }
    }
    let level = 0;
    return Array.from(partial, (part, bin) => (level += whole[bin]) + part / width);
  },

  /**
   * A statistic of the values whose time, ascending, is in each bin; null in a bin without any.
   * @type {(times: ArrayLike<number>, values: ArrayLike<number>, take: (i: number) => unknown, from: number, to: number, count: number, name: string) => Unsure[]}
   */
  byTime(times, values, take, from, to, count, name) {
    const width = (to - from) / count;
    const bins = Array.from({length: count}, () => /** @type {number[]} */ ([]));
    for (let i = figures.firstFrom(times, from); i < times.length && times[i] <= to; i++) {
      if (take(i)) bins[Math.min(count - 1, Math.floor((times[i] - from) / width))].push(values[i]);
    }
    return bins.map((bin) => figures.statistic(bin, name));
  },

  /** The first index in ascending values that is not below a bound. @type {(sorted: ArrayLike<number>, bound: number) => number} */
  firstFrom(sorted, bound) {
    let low = 0, high = sorted.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (sorted[middle] < bound) low = middle + 1;
      else high = middle;
    }
    return low;
  },
};
