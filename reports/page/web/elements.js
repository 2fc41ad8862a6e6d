// Elements of the page. Texts become text nodes only, so no text is read as markup.
import {words} from "./words.js";

/** The element with an id, which must be there. @type {(id: string) => HTMLElement} */
export function byId(id) {
  const found = document.getElementById(id);
  if (!found) throw new Error(`there is no #${id}`);
  return found;
}

/** The facts in the page. @type {() => any} */
export function readFacts() {
  return JSON.parse(byId("facts").textContent ?? "");
}

/**
 * Make an element: properties by name, "on..." as listeners, "aria..." and "data-..." as attributes; children last.
 * @template {keyof HTMLElementTagNameMap} T
 * @param {T} tag
 * @param {Record<string, any>} properties
 * @param {(Child | Child[])[]} children
 * @returns {HTMLElementTagNameMap[T]}
 */
export function make(tag, properties = {}, ...children) {
  const found = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) found.addEventListener(name.slice(2), value);
    else if (name === "class") found.className = value;
    else if (name in found && !name.includes("-")) Object.assign(found, {[name]: value});
    else found.setAttribute(name, value === true ? "" : value);
  }
  found.append(...children.flat().flatMap((child) => child ?? []));
  return found;
}

/** Whether a cell has its own sort value. @type {(cell: Cell) => cell is {show: Child, value: any}} */
const sorted = (cell) => Boolean(cell && typeof cell === "object" && "value" in cell);

/**
 * A table that sorts by a click on a heading. A column has a `title` and optionally `text` (left-aligned). A cell is a
 * text, an element, or {show, value}: the content and the sort value.
 * @type {(caption: string, columns: TableColumn[], rows: Cell[][], options?: TableOptions) => HTMLElement}
 */
export function makeTable(caption, columns, rows, options = {}) {
  const body = make("tbody");
  const most = options.most || Infinity;
  let shown = rows, all = rows.length <= most;
  const fill = () => {
    body.replaceChildren(...shown.slice(0, all ? shown.length : most).map((row) => make("tr", {}, row.map((cell, at) => {
      const what = sorted(cell) ? cell.show : cell;
      const properties = {class: columns[at].text ? "text" : "number", "data-value": sorted(cell) && cell.value !== null ? `${cell.value}` : null};
      return at === 0 && !options.plain ? make("th", {scope: "row", ...properties}, what ?? "–") : make("td", properties, what ?? "–");
    }))));
  };
  /** @type {HTMLElement[]} */
  const heads = columns.map((column, at) => {
    const head = make("th", {scope: "col", class: column.text ? "text" : "number"});
    if (options.fixed) {
      head.append(column.title);
      return head;
    }
    head.append(make("button", {type: "button", title: column.tip || null, onclick: () => {
      const ascending = head.getAttribute("aria-sort") === (column.text ? null : "descending") || head.getAttribute("aria-sort") === "descending";
      for (const other of heads) other.removeAttribute("aria-sort");
      head.setAttribute("aria-sort", ascending ? "ascending" : "descending");
      const sign = ascending ? 1 : -1;
      shown = [...rows].sort((one, two) => {
        const [a, b] = [one[at], two[at]].map((cell) => (sorted(cell) ? cell.value : cell));
        if (a === b) return 0;
        if (a === null || a === undefined) return 1;
        if (b === null || b === undefined) return -1;
        return a < b ? -sign : sign;
      });
      fill();
    }}, column.title));
    return head;
  });
  fill();
  const found = make("div", {class: "scroll", tabIndex: 0, role: "region", "aria-label": caption},
    make("table", {}, make("caption", {class: options.hideCaption ? "hidden" : ""}, caption), make("thead", {}, make("tr", {}, heads)), body));
  if (all) return found;
  const more = make("button", {type: "button", class: "more", onclick: () => {
    all = true;
    fill();
    more.remove();
  }}, `Show all ${words.whole(rows.length)}`);
  return make("div", {}, found, more);
}

/**
 * A labelled list of options.
 * @type {(label: string, options: [string, string][], chosen: string, changed: (value: string) => void, id?: string) => HTMLElement}
 */
export function makeChoice(label, options, chosen, changed, id) {
  const select = make("select", {id, onchange: () => changed(select.value)},
    options.map(([value, text]) => make("option", {value, selected: value === chosen}, text)));
  return make("label", {class: "field"}, make("span", {}, label), select);
}

/** A cell with a sort value and its text. @type {<T>(say: (value: T) => Child, value: T) => {show: Child, value: T}} */
export function cellOf(say, value) {
  return {show: say(value), value};
}

/** An option whose value and text are the same. @type {(name: string) => [string, string]} */
export const twice = (name) => [name, name];

/** A word with a capital first letter. @type {(word: string) => string} */
export function capital(word) {
  return word[0].toUpperCase() + word.slice(1);
}

/** A share as a bar with text; a target is marked on the bar. @type {(share: Unsure, decimals?: number, target?: number) => HTMLElement} */
export function shareBar(share, decimals = 1, target) {
  const bar = make("i"), mark = make("u");
  bar.style.width = `${90 * (share ?? 0)}px`;
  if (target !== undefined) mark.style.left = `${90 * target}px`;
  return make("span", {class: target === undefined ? "share" : "share both"}, bar, target === undefined ? null : mark, words.percent(share, decimals));
}

/** A drawing with its title, and optionally a table. @type {(title: string, ...parts: Child[]) => HTMLElement} */
export function makeFigure(title, ...parts) {
  return make("figure", {}, make("figcaption", {}, title), ...parts);
}

/** A section of the page with a heading; `lead` introduces it in a sentence. @type {(id: string, title: string, lead: string | null) => HTMLElement} */
export function addSection(id, title, lead) {
  const found = make("section", {id, "aria-labelledby": `${id}-title`},
    make("h2", {id: `${id}-title`}, title), lead ? make("p", {class: "lead"}, lead) : null);
  byId("main").append(found);
  return found;
}

/** The content of a drawing as a table, built when it is opened. @type {(title: string, build: () => Node) => HTMLDetailsElement} */
export function makeBehind(title, build) {
  const found = make("details", {class: "behind"}, make("summary", {}, title));
  found.addEventListener("toggle", () => {
    for (const old of [...found.children].slice(1)) old.remove();
    if (found.open) found.append(build());
  });
  return found;
}
