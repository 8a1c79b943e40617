// Training runs, live while they train: curves side by side, samples, alarms.

import { get } from "../api.js";
import { lines } from "../charts.js";
import { element, percent } from "../dom.js";

const EVERY = 3000; // milliseconds between looks at the files

export function runsView(context) {
  const list = element("div", { class: "panel", role: "group", "aria-label": "Runs" });
  const output = element("div", {});
  const chosen = new Set(context.get("runs").split("|").filter(Boolean));
  const known = new Map(); // run -> {offset, lines}
  let timer = null, over = false;

  async function refresh() {
    try {
      const { runs } = await get("/v1/runs");
      if (!chosen.size && runs.length) chosen.add(runs[0].name);
      list.replaceChildren(...runs.map(choice));
      await Promise.all([...chosen].map(follow));
      draw();
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
    return element("div", {}, element("label", {}, box, ` ${run.name}`), element("span", { class: "note" }, run.changed_seconds_ago < 60 ? " · training" : ""));
  }
  async function follow(name) {
    if (!chosen.has(name)) return;
    const kept = known.get(name) ?? { offset: 0, lines: [] };
    const more = await get(`/v1/run?name=${encodeURIComponent(name)}&offset=${kept.offset}`);
    known.set(name, { offset: more.offset, lines: more.offset < kept.offset ? more.lines : [...kept.lines, ...more.lines] });
  }
  function draw() {
    const shownRuns = [...chosen].filter((name) => known.has(name));
    const objectives = [...new Set(shownRuns.flatMap((name) => known.get(name).lines.flatMap((line) => Object.keys(line.loss ?? {}))))];
    const curve = (kind, key, objective) => shownRuns.map((name) => ({
      name, points: known.get(name).lines.filter((line) => line.kind === kind && line[key]?.[objective] != null).map((line) => [line.tokens, line[key][objective]]) }));
    output.replaceChildren(
      ...objectives.flatMap((objective) => [
        element("div", { class: "panel" }, element("h3", {}, `${objective.replaceAll("_", " ")}: loss`), lines(curve("training", "loss", objective), { x: "tokens", y: "loss" })),
        element("div", { class: "panel" }, element("h3", {}, `${objective.replaceAll("_", " ")}: accuracy on held-out text`), lines(curve("evaluation", "accuracy", objective), { x: "tokens", y: "accuracy" }))]),
      ...shownRuns.map((name) => said(name, known.get(name).lines)));
  }
  context.onLeave(() => { over = true; clearTimeout(timer); });
  refresh();
  return element("div", {}, element("p", { class: "lead" }, "Curves of the runs below the folder that `litebert serve --runs` was given."), list, output);
}

function said(name, found) {
  const training = found.filter((line) => line.kind === "training").at(-1);
  const sample = found.filter((line) => line.sample).at(-1);
  const alarms = found.filter((line) => line.kind === "alarm");
  return element("div", { class: "panel" }, element("h3", {}, name),
    training ? element("p", {}, `step ${training.step.toLocaleString("en")}, ${training.tokens.toLocaleString("en")} tokens, ${percent(training.time.progress)} of the budget, ${Math.round(training.time.tokens_per_second).toLocaleString("en")} tokens/s`) : null,
    sample ? element("p", {}, element("strong", {}, "Sample: "), sample.sample) : null,
    alarms.map((line) => element("p", { class: "problem" }, line.message)));
}
