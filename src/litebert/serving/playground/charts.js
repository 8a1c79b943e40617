// Charts without a library: lines as SVG, attention as squares, numbers as a coloured table.

import { compact, drawn, element } from "./dom.js";

export const COLOURS = ["--c0", "--c1", "--c2", "--c3", "--c4", "--c5"];
export const colour = (place) => `var(${COLOURS[place % COLOURS.length]})`;
const HEIGHT = 230, LEFT = 46, RIGHT = 14, TOP = 14, BOTTOM = 34;
const WIDEST = 520, EDGES = 58; // a chart is drawn as wide as the page lets it, or its words shrink
const FEW = 30; // points that are drawn one by one

// Series of {name, points: [[x, y], …]}; `whole`: x counts things; `from`, `to`: fixed ends of y.
export function lines(series, { x = "", y = "", title = "", whole = false, from, to } = {}) {
  const shown = series.filter((one) => one.points.length);
  const points = shown.flatMap((one) => one.points);
  if (!points.length) return element("p", { class: "note" }, "Nothing to draw yet.");
  const [least, most] = range(points.map((point) => point[1]));
  const low = from ?? least, high = to ?? most;
  const [first, last] = range(points.map((point) => point[0]));
  const width = Math.max(260, Math.min(WIDEST, document.documentElement.clientWidth - EDGES));
  const across = (value) => LEFT + ((value - first) / (last - first || 1)) * (width - LEFT - RIGHT);
  const up = (value) => HEIGHT - BOTTOM - ((value - low) / (high - low || 1)) * (HEIGHT - TOP - BOTTOM);
  const grid = ticks(low, high).map(([value, text]) => [
    drawn("line", { class: "grid", x1: LEFT, x2: width - RIGHT, y1: up(value), y2: up(value) }),
    drawn("text", { x: LEFT - 6, y: up(value) + 4, "text-anchor": "end" }, text),
  ]);
  const alone = points.every((point) => point[0] === points[0][0]);
  const marks = alone ? [[points[0][0], compact(points[0][0])]] : ticks(first, last, whole ? Math.min(8, last - first) : 4, whole);
  const below = marks.map(([value, text]) =>
    drawn("text", { x: across(value), y: HEIGHT - BOTTOM + 17, "text-anchor": "middle" }, text));
  const curves = shown.map((one, place) => {
    const path = one.points.map(([px, py], i) => `${i ? "L" : "M"}${across(px).toFixed(1)} ${up(py).toFixed(1)}`).join("");
    const dots = one.points.length <= FEW ? one.points.map(([px, py]) =>
      drawn("circle", { cx: across(px), cy: up(py), r: 3.5, style: `fill: ${colour(place)}` })) : [];
    return [drawn("path", { class: "curve", d: path, style: `stroke: ${colour(place)}` }), dots];
  });
  const chart = drawn("svg", { viewBox: `0 0 ${width} ${HEIGHT}`, role: "img", "aria-label": describe(shown, title || y) },
    grid, below,
    drawn("text", { x: width - RIGHT, y: HEIGHT - 3, "text-anchor": "end" }, x),
    drawn("text", { x: 2, y: 10 }, y), curves);
  return element("figure", {}, title ? element("figcaption", {}, title) : null, chart,
    shown.length > 1 ? legend(shown.map((one) => one.name)) : null);
}

export function legend(names) {
  return element("div", { class: "legend" }, names.map((name, place) => {
    const item = element("span", {}, name);
    item.style.setProperty("--colour", colour(place));
    return item;
  }));
}

function describe(series, label) {
  const parts = series.map((one) => {
    const [, begin] = one.points[0], [, end] = one.points[one.points.length - 1];
    return `${one.name} from ${compact(begin)} to ${compact(end)}`;
  });
  return `${label}: ${parts.join("; ")}`;
}

function range(values) {
  let low = Infinity, high = -Infinity;
  for (const value of values) { low = Math.min(low, value); high = Math.max(high, value); }
  return low === high ? [low - 0.5, high + 0.5] : [low, high];
}

// Round values and how to write them: as many digits as tell them apart.
function ticks(low, high, count = 4, whole = false) {
  const raw = (high - low) / Math.max(count, 1), size = 10 ** Math.floor(Math.log10(raw));
  let step = [1, 2, 5, 10].map((factor) => factor * size).find((value) => value >= raw * 0.999);
  if (whole) step = Math.max(1, Math.round(step));
  const digits = Math.max(0, -Math.floor(Math.log10(step) + 1e-9));
  const found = [];
  for (let value = Math.ceil(low / step - 1e-9) * step; value <= high + step * 1e-6; value += step)
    found.push([value, Math.abs(high) >= 1000 ? compact(value) : value.toFixed(digits)]);
  return found;
}

const MARGIN = 60; // for the last column's slanted name

// A square of numbers, the largest the darkest: attention from rows to columns.
export function heatmap(values, names, label) {
  const size = Math.max(13, Math.min(26, Math.floor(560 / names.length)));
  const edge = Math.min(110, 16 + 7 * Math.max(...names.map((name) => name.length)));
  const whole = edge + size * names.length, most = darkest(values);
  const cells = values.flatMap((row, i) => row.map((value, j) =>
    drawn("rect", { x: edge + j * size, y: edge + i * size, width: size - 1, height: size - 1, rx: 2,
      style: `fill: var(--accent); fill-opacity: ${(0.04 + 0.96 * value / most).toFixed(3)}` },
    drawn("title", {}, `${names[i]} → ${names[j]}: ${(100 * value).toFixed(1)} %`))));
  const beside = names.map((name, i) =>
    drawn("text", { x: edge - 5, y: edge + i * size + size * 0.7, "text-anchor": "end" }, name));
  const above = names.map((name, j) =>
    drawn("text", { x: 0, y: 0, transform: `translate(${edge + j * size + size * 0.7} ${edge - 5}) rotate(-60)` }, name));
  return drawn("svg", { viewBox: `0 0 ${whole + MARGIN} ${whole}`, width: whole + MARGIN, role: "img", "aria-label": label }, cells, beside, above);
}

// Attention that is the same everywhere is half dark, not all dark.
const darkest = (values) => Math.max(2 / values.length, ...values.flat());

// The same, as small as a stamp.
export function thumbnail(values) {
  const side = values.length, most = darkest(values);
  const canvas = element("canvas", { width: side, height: side, "aria-hidden": "true" });
  const brush = canvas.getContext("2d");
  brush.fillStyle = getComputedStyle(document.documentElement).getPropertyValue("--accent");
  values.forEach((row, i) => row.forEach((value, j) => {
    brush.globalAlpha = 0.04 + 0.96 * value / most;
    brush.fillRect(j, i, 1, 1);
  }));
  return canvas;
}

// A table whose cells are as dark as their numbers are large.
export function heatTable(corner, rows, columns, values, write) {
  const most = Math.max(...values.flat()) || 1;
  return element("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": corner },
    element("table", { class: "heat" },
      element("thead", {}, element("tr", {}, [corner, ...columns].map((text) => element("th", { scope: "col" }, text)))),
      element("tbody", {}, rows.map((name, i) => element("tr", {}, element("td", {}, name), values[i].map((value) =>
        element("td", { style: `background: color-mix(in srgb, var(--accent) ${(42 * Math.max(0, value) / most).toFixed(1)}%, var(--panel))` }, write(value))))))));
}
