"use strict";
// Waits by size and run time: a table whose cells are coloured by what they say.

const RUNTIMES = [["< 1 min", MINUTE], ["< 10 min", 10 * MINUTE], ["< 1 h", HOUR], ["< 6 h", 6 * HOUR], ["< 1 d", DAY], ["longer", Infinity]];

/** Sizes in powers of four: 1, 2 to 4, 5 to 16, ... */
function sizeClass(size) {
  return Math.ceil(Math.log2(Math.max(1, size)) / 2 - 1e-12);
}

function sizeName(number) {
  return number === 0 ? "1" : `${words.whole(4 ** (number - 1) + 1)}–${words.whole(4 ** number)}`;
}

function drawHeat(state) {
  const make = elements.make;
  const section = elements.section("heat", "Waits by size and run time", "Who waits: the wait of the jobs of each size and run time, and how many they are.");
  let name = "mean";
  const holder = make("div", {class: "grid"});
  section.append(make("div", {class: "bar plain"}, elements.choice("Wait:", STATISTICS, name, (value) => {
    name = value;
    draw();
  })), holder);
  const draw = () => {
    const found = state.runs.map((run) => {
      const cells = new Map();
      let largest = 0;
      for (const job of run.ended) {
        const row = sizeClass(run.job.size[job]), column = RUNTIMES.findIndex(([, bound]) => run.job.execution[job] < bound);
        largest = Math.max(largest, row);
        const key = `${row} ${column}`;
        if (!cells.has(key)) cells.set(key, []);
        cells.get(key).push(run.job.wait[job]);
      }
      return {run, cells, largest, values: new Map([...cells].map(([key, waits]) => [key, figures.statistic(waits, name)]))};
    });
    // one scale for all runs
    const logs = found.flatMap(({values}) => [...values.values()].map((value) => Math.log(1 + value)));
    const least = Math.min(...logs), apart = Math.max(...logs) - least || 1;
    holder.replaceChildren(...found.map(({run, cells, largest, values}) => {
      const table = make("table", {class: "heat", id: `heat-${run.number}`},
        make("caption", {}, `${run.name}: ${STATISTICS.find((one) => one[0] === name)[1]} wait, rows by size in units, columns by run time`),
        make("thead", {}, make("tr", {}, make("th", {scope: "col"}, "Units"), RUNTIMES.map(([title]) => make("th", {scope: "col"}, title)))),
        make("tbody", {}, Array.from({length: largest + 1}, (_, row) => make("tr", {}, make("th", {scope: "row"}, sizeName(row)), RUNTIMES.map((_, column) => {
          const key = `${row} ${column}`;
          if (!cells.has(key)) return make("td", {class: "none"}, "");
          const value = values.get(key), rgb = colours.scale(0.1 + 0.8 * (Math.log(1 + value) - least) / apart);
          const cell = make("td", {"data-value": `${value}`, "data-jobs": `${cells.get(key).length}`}, make("b", {}, words.brief(value)), make("small", {}, `${words.whole(cells.get(key).length)} jobs`));
          cell.style.background = `rgb(${rgb.join(" ")})`;
          cell.style.color = colours.on(rgb);
          return cell;
        })))));
      return make("div", {class: "scroll", tabIndex: 0, role: "region", "aria-label": `Waits by size and run time, ${run.name}`}, table);
    }));
  };
  state.onFilter.push(draw);
  draw();
  return draw;
}
