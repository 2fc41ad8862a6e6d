"use strict";
// Elements of the page. Texts become text nodes and nothing else: no text is ever read as markup.

const elements = {
  /** Make an element: properties by name, "on..." as listeners, "aria..." and "data-..." as attributes; children last. */
  make(tag, properties = {}, ...children) {
    const found = document.createElement(tag);
    for (const [name, value] of Object.entries(properties)) {
      if (value === null || value === undefined || value === false) continue;
      if (name.startsWith("on")) found.addEventListener(name.slice(2), value);
      else if (name === "class") found.className = value;
      else if (name in found && !name.includes("-")) found[name] = value;
      else found.setAttribute(name, value === true ? "" : value);
    }
    found.append(...children.flat().filter((child) => child !== null && child !== undefined));
    return found;
  },

  /**
   * A table that sorts by a click on a heading. A column has `title`, perhaps `text` (left-aligned), and each row one
   * cell a column: a text, an element, or {show, value}: what is shown, and what it is sorted by.
   */
  table(caption, columns, rows, options = {}) {
    const make = elements.make;
    const body = make("tbody");
    const value = (cell) => (cell && typeof cell === "object" && "value" in cell ? cell.value : cell);
    const most = options.most || Infinity;
    let shown = rows, all = rows.length <= most;
    const fill = () => {
      body.replaceChildren(...shown.slice(0, all ? shown.length : most).map((row) => make("tr", {}, row.map((cell, at) => {
        const what = cell && typeof cell === "object" && "value" in cell ? cell.show : cell;
        const properties = {class: columns[at].text ? "text" : "number"};
        if (cell && typeof cell === "object" && "value" in cell && cell.value !== null) properties["data-value"] = `${cell.value}`;
        return at === 0 && !options.plain ? make("th", {scope: "row", ...properties}, what ?? "–") : make("td", properties, what ?? "–");
      }))));
    };
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
          const a = value(one[at]), b = value(two[at]);
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
  },

  /** A choice of one of several, with its label. */
  choice(label, options, chosen, changed) {
    const make = elements.make;
    const select = make("select", {onchange: () => changed(select.value)},
      options.map(([value, text]) => make("option", {value, selected: value === chosen}, text)));
    return make("label", {class: "field"}, make("span", {}, label), select);
  },

  /** A part of the page with a heading; `lead` says in a sentence what there is to see. */
  section(id, title, lead) {
    const make = elements.make;
    const found = make("section", {id, "aria-labelledby": `${id}-title`},
      make("h2", {id: `${id}-title`}, title), lead ? make("p", {class: "lead"}, lead) : null);
    document.getElementById("main").append(found);
    return found;
  },

  /** What a drawing shows, as a table for those who do not see it; made when it is opened. */
  behind(title, build) {
    const make = elements.make;
    const found = make("details", {class: "behind"}, make("summary", {}, title));
    found.addEventListener("toggle", () => {
      for (const old of [...found.children].slice(1)) old.remove();
      if (found.open) found.append(build());
    });
    return found;
  },
};
