// Line charts as SVG: series of {name, points: [[x, y], …]}.

import { compact, drawn, element } from "./dom.js";

export const COLOURS = ["--c0", "--c1", "--c2", "--c3", "--c4", "--c5"];
const WIDTH = 640, HEIGHT = 240, LEFT = 48, RIGHT = 12, TOP = 12, BOTTOM = 34;

export function lines(series, { x = "", y = "", label = "" } = {}) {
  const shown = series.filter((one) => one.points.length);
  const points = shown.flatMap((one) => one.points);
  if (!points.length) return element("p", { class: "note" }, "Nothing to draw yet.");
  const [low, high] = range(points.map((point) => point[1]));
  const [first, last] = range(points.map((point) => point[0]));
  const across = (value) => LEFT + ((value - first) / (last - first || 1)) * (WIDTH - LEFT - RIGHT);
  const up = (value) => HEIGHT - BOTTOM - ((value - low) / (high - low || 1)) * (HEIGHT - TOP - BOTTOM);
  const grid = ticks(low, high).map((value) => [
    drawn("line", { class: "grid", x1: LEFT, x2: WIDTH - RIGHT, y1: up(value), y2: up(value) }),
    drawn("text", { x: LEFT - 6, y: up(value) + 4, "text-anchor": "end" }, compact(value)),
  ]);
  const below = ticks(first, last).map((value) =>
    drawn("text", { x: across(value), y: HEIGHT - BOTTOM + 16, "text-anchor": "middle" }, compact(value)));
  const curves = shown.map((one, place) => {
    const path = one.points.map(([px, py], i) => `${i ? "L" : "M"}${across(px).toFixed(1)} ${up(py).toFixed(1)}`).join("");
    return drawn("path", { class: "curve", d: path, style: `stroke: var(${COLOURS[place % COLOURS.length]})` });
  });
  const chart = drawn("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-label": describe(shown, label || y) },
    grid, below,
    drawn("text", { x: WIDTH - RIGHT, y: HEIGHT - 4, "text-anchor": "end" }, x),
    drawn("text", { x: 4, y: TOP }, y), curves);
  return element("figure", { style: "margin: 0" }, chart, legend(shown));
}

export function legend(series) {
  return element("div", { class: "legend" }, series.map((one, place) => {
    const item = element("span", {}, one.name);
    item.style.setProperty("--colour", `var(${COLOURS[place % COLOURS.length]})`);
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

function ticks(low, high, count = 4) {
  const raw = (high - low) / count, size = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map((factor) => factor * size).find((value) => value >= raw);
  const found = [];
  for (let value = Math.ceil(low / step) * step; value <= high + 1e-9; value += step) found.push(value);
  return found;
}

const MARGIN = 60; // for the last column's slanted name

// A square of numbers between 0 and 1: attention from rows to columns.
export function heatmap(values, names, label) {
  const size = Math.max(8, Math.min(22, Math.floor(480 / names.length)));
  const edge = 90, whole = edge + size * names.length;
  const cells = values.flatMap((row, i) => row.map((value, j) =>
    drawn("rect", { x: edge + j * size, y: edge + i * size, width: size, height: size,
      style: `fill: var(--accent); fill-opacity: ${value.toFixed(3)}` })));
  const beside = names.map((name, i) =>
    drawn("text", { x: edge - 4, y: edge + i * size + size * 0.7, "text-anchor": "end" }, name));
  const above = names.map((name, j) =>
    drawn("text", { x: 0, y: 0, transform: `translate(${edge + j * size + size * 0.7} ${edge - 4}) rotate(-60)` }, name));
  return drawn("svg", { viewBox: `0 0 ${whole + MARGIN} ${whole}`, width: whole + MARGIN, role: "img", "aria-label": label }, cells, beside, above);
}
