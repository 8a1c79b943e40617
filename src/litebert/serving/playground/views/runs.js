// Training runs, live while they train: curves side by side, samples, alarms.

import { get, remember } from "../api.js";
import { lines } from "../charts.js";
import { element, panel, percent } from "../dom.js";

const EVERY = 3000; // milliseconds between looks at the files
const LIVE = 90; // seconds since the last line
const MOST_POINTS = 600; // of a curve

export function runsView(context) {
  const list = element("div", { class: "panel", role: "group", "aria-label": "Runs" });
  const output = element("div", {});
  const chosen = new Set(context.get("runs").split("|").filter(Boolean));
  const known = new Map(); // run -> {offset, lines, warnings}
  let timer = null, over = false, listed = "";

  async function refresh() {
    try {
      const { runs } = await get("/v1/runs");
      if (!chosen.size && runs.length) chosen.add(runs[0].name);
      const now = JSON.stringify(runs.map((run) => [run.name, isLive(run)]));
      if (now !== listed) { // else a checkbox would lose the keyboard's focus
        listed = now;
        list.replaceChildren(...(runs.length ? runs.map(choice) : [empty()]));
      }
      const news = await Promise.all([...chosen].map(follow));
      if (news.some(Boolean)) draw();
    } catch (error) {
      output.replaceChildren(element("p", { class: "problem", role: "alert" }, error.message));
    }
    if (!over) timer = setTimeout(refresh, EVERY);
  }
  function choice(run) {
    const box = element("input", { type: "checkbox", checked: chosen.has(run.name), onchange: () => {
      box.checked ? chosen.add(run.name) : chosen.delete(run.name);
      context.set({ runs: [...chosen].join("|") });
      follow(run.name).then(draw);
    } });
    return element("div", { class: "run" }, element("label", {}, box, ` ${run.name}`),
      isLive(run) ? element("span", { class: "live" }, "● training now") : element("span", { class: "note" }, ago(run.changed_seconds_ago)));
  }
  async function follow(name) {
    if (!chosen.has(name)) return false;
    const kept = known.get(name) ?? { offset: 0, lines: [] };
    const path = `/v1/run?name=${encodeURIComponent(name)}&offset=`;
    const more = await get(path + kept.offset);
    remember("GET", `${path}0`);
    const again = more.offset < kept.offset; // the run was begun anew
    known.set(name, { offset: more.offset, lines: again ? more.lines : [...kept.lines, ...more.lines], warnings: more.warnings });
    return again || more.lines.length > 0 || !known.has(name);
  }
  function draw() {
    const shown = [...chosen].filter((name) => known.has(name));
    const linesOf = (name, kind) => known.get(name).lines.filter((line) => line.kind === kind);
    const curve = (kind, pick) => shown.map((name) => ({ name, points: thinned(linesOf(name, kind).filter((line) => pick(line) != null).map((line) => [line.tokens, pick(line)])) }));
    const charts = [];
    const add = (title, series, more = {}) => series.some((one) => one.points.length) && charts.push(lines(series, { title, x: "tokens", ...more }));
    for (const objective of names(shown, known, (line) => line.loss)) {
      const said = objective.replaceAll("_", " ");
      add(`${said}: loss`, curve("training", (line) => line.loss?.[objective]));
      add(`${said}: loss on held-out text`, curve("evaluation", (line) => line.loss?.[objective]));
      add(`${said}: accuracy on held-out text`, curve("evaluation", (line) => line.accuracy?.[objective]));
    }
    for (const set of names(shown, known, (line) => line.scores))
      for (const metric of names(shown, known, (line) => line.scores?.[set]))
        add(`${metric.replaceAll("_", " ")} on ${set}`, curve("evaluation", (line) => line.scores?.[set]?.[metric]));
    add("learning rate", curve("training", (line) => line.learning_rate));
    output.replaceChildren(element("div", { class: "panel" }, charts.length ? element("div", { class: "columns two" }, charts) : element("p", { class: "note" }, "Choose a run above.")),
      ...shown.map((name) => said(name, known.get(name))));
  }
  context.onLeave(() => { over = true; clearTimeout(timer); });
  refresh();
  return element("div", {}, element("p", { class: "lead" }, "Training runs in the folder that the service watches, followed while they train. Choose several to lay their curves over each other."), list, output);
}

const isLive = (run) => run.changed_seconds_ago < LIVE;
const empty = () => element("p", { class: "note" }, "There is no run in the folder yet. Start one, and it appears here: ", element("code", {}, "litebert pretrain albert-tiny --corpus corpus --out FOLDER/first"));
const names = (shown, known, pick) => [...new Set(shown.flatMap((name) => known.get(name).lines.flatMap((line) => Object.keys(pick(line) ?? {}))))];

function ago(seconds) {
  for (const [size, unit] of [[86400, "day"], [3600, "hour"], [60, "minute"]])
    if (seconds >= size) return `${Math.floor(seconds / size)} ${unit}${seconds >= 2 * size ? "s" : ""} ago`;
  return "just now";
}

function thinned(points) {
  const every = Math.ceil(points.length / MOST_POINTS);
  return points.filter((_, place) => place % every === 0 || place === points.length - 1);
}

function said(name, { lines: found, warnings }) {
  const training = found.filter((line) => line.kind === "training").at(-1);
  const sample = found.filter((line) => line.sample).at(-1);
  return panel(name, "",
    training ? element("ul", { class: "facts" }, [[training.step.toLocaleString("en"), "steps"], [training.tokens.toLocaleString("en"), "tokens"],
      [percent(training.time.progress), "of the budget"], [Math.round(training.time.tokens_per_second).toLocaleString("en"), "tokens a second"]]
      .map(([value, what]) => element("li", {}, element("strong", {}, value), ` ${what}`))) : null,
    (warnings ?? []).map((text) => element("p", { class: "problem" }, text)),
    sample ? [element("p", { class: "caption" }, "A held-out text with masked tokens: what was right, and what was guessed instead of ", element("s", {}, "what was there"), "."), filled(sample.sample)] : null);
}

// [was there] where the guess was right, [was there≠guess] where it was not.
function filled(text) {
  return element("p", { class: "text" }, text.split(/(\[[^\]]*\])/).map((part) => {
    const found = part.match(/^\[([^\]≠]*)(?:(≠)([^\]]*))?\]$/);
    if (!found) return part;
    return found[2] ? element("span", { class: "wrong" }, found[3] || "∅", " ", element("s", {}, found[1])) : element("span", { class: "right" }, found[1]);
  }));
}
