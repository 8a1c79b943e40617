// Elements without a framework: element("p", {class: "note"}, "text", child).

export function element(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (name === "value") node.value = value;
    else if (name === "style") node.style.cssText = value; // as an attribute the page's policy forbids it
    else if (value === true) node.setAttribute(name, "");
    else if (value !== false && value != null) node.setAttribute(name, value);
  }
  node.append(...children.flat(Infinity).filter((child) => child != null && child !== false));
  return node;
}

const SVG = "http://www.w3.org/2000/svg";

export function drawn(tag, attributes = {}, ...children) {
  const node = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes))
    if (name === "style") node.style.cssText = value;
    else node.setAttribute(name, value);
  node.append(...children.flat(Infinity));
  return node;
}

let fields = 0;

// A label and its input, tied together.
export function field(label, input) {
  input.id = input.id || `field-${++fields}`;
  return element("div", {}, element("label", { for: input.id }, label), input);
}

export function area(value, rows = 3) {
  return element("textarea", { rows, value, spellcheck: "false" });
}

export const panel = (title, note, ...rest) => element("section", { class: "panel" },
  title ? element("h3", {}, title) : null, note ? element("p", { class: "note" }, note) : null, rest);

export function percent(value) {
  return `${(100 * value).toFixed(1)} %`;
}

export function compact(value) {
  for (const [size, unit] of [[1e12, "T"], [1e9, "G"], [1e6, "M"], [1e3, "k"]])
    if (Math.abs(value) >= size) return `${(value / size).toFixed(value >= 100 * size ? 0 : 1)} ${unit}`;
  return String(Math.round(value * 100) / 100);
}

// A row of a bar chart; the numbers stand beside it, so the bar itself is decoration.
export function bar(name, value, shown = percent(value), look = "") {
  return stack(name, [[value, "var(--accent)"]], shown, look);
}

// The same of several parts: [[fraction, colour], …].
export function stack(name, parts, shown, look = "") {
  const fills = parts.map(([value, colour]) => {
    const fill = element("div", { class: "fill" });
    fill.style.width = `${Math.max(0, Math.min(1, value)) * 100}%`;
    fill.style.setProperty("--colour", colour);
    return fill;
  });
  return element("div", { class: `bar ${look}` },
    element("span", { class: "name" }, name),
    element("div", { class: "track", "aria-hidden": "true" }, fills),
    element("span", { class: "value" }, shown));
}

export function bars(probabilities) {
  const rows = Object.entries(probabilities).sort((a, b) => b[1] - a[1]);
  return element("div", {}, rows.map(([name, value], place) => bar(name, value, percent(value), place ? "" : "first")));
}

export function chips(label, texts, choose) {
  return element("div", { class: "chips", role: "group", "aria-label": label },
    element("span", { class: "caption" }, `${label}:`),
    texts.map((text) => element("button", { type: "button", onclick: () => choose(text) }, short(text))));
}

function short(example) {
  const text = typeof example === "string" ? example : Object.values(example).flat().filter(Boolean).join(" · ");
  return text.length > 72 ? `${text.slice(0, 70)}…` : text;
}

export function table(headings, rows, ownRow = -1) {
  return element("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": headings[0] },
    element("table", {},
      element("thead", {}, element("tr", {}, headings.map((text) => element("th", { scope: "col" }, text)))),
      element("tbody", {}, rows.map((cells, place) =>
        element("tr", place === ownRow ? { class: "own" } : {}, cells.map((cell) => element("td", {}, cell)))))));
}

// Text with marked stretches: [{start, end, label, colour}], by characters of the original.
export function marked(text, spans) {
  const characters = Array.from(text); // offsets count code points, not UTF-16 units
  const parts = [];
  let place = 0;
  for (const { start, end, label, colour } of [...spans].sort((a, b) => a.start - b.start)) {
    if (start < place) continue;
    parts.push(characters.slice(place, start).join(""));
    const found = element("mark", {}, characters.slice(start, end).join(""), label ? element("small", {}, label) : null);
    if (colour) found.style.setProperty("--colour", colour);
    parts.push(found);
    place = end;
  }
  parts.push(characters.slice(place).join(""));
  return element("p", { class: "text" }, parts);
}
