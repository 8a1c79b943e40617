// One text through the layers: what would be answered at each depth, where exit rules stop, how far
// each token moves (the paper's Figure 1), and what the heads attend to.

import { ask } from "../api.js";
import { heatmap, lines } from "../charts.js";
import { element, field, percent, table } from "../dom.js";
import { asker, formOf, inputForm } from "./asking.js";

export function layersView(context) {
  const { model } = context;
  const output = element("div", { "aria-live": "polite" });
  const form = inputForm(formOf(model), context, () => run());
  const { button, run } = asker("Follow it", output, context, async () => {
    form.remember();
    const found = await ask(model.id, "layers", { input: form.read(), attention: true });
    return [
      found.predictions.length ? byDepth(found) : null,
      panel("How far the tokens move", "The distance between a layer's input and its output, over all tokens. Where it stays small, the layer only refines.",
        lines([{ name: "L2 distance (mean)", points: found.distance.map((row, i) => [i + 1, mean(row)]) }], { x: "layer", y: "L2" }),
        lines([{ name: "cosine distance (mean)", points: found.cosine.map((row, i) => [i + 1, 1 - mean(row)]) }], { x: "layer", y: "1 − cosine" })),
      panel("Token by token", "The same for every token, layer by layer (L2).", tokenTable(found)),
      found.attention ? attention(found) : element("p", { class: "note" }, "Attention is shown for short texts only."),
    ].filter(Boolean);
  });
  run();
  const own = model.shared
    ? `${model.id} is one layer, applied ${model.layers} times to its own output.`
    : `${model.id} has ${model.layers} layers of its own weights.`;
  return element("div", {}, element("p", { class: "lead" }, own), element("div", { class: "panel" }, form.node, button), output);
}

const mean = (values) => values.reduce((sum, value) => sum + value, 0) / values.length;
const panel = (title, note, ...rest) => element("div", { class: "panel" }, element("h3", {}, title), element("p", { class: "note" }, note), rest);

function byDepth(found) {
  const rows = found.predictions.map((one, i) => [`after layer ${i + 1}`, summary(one), Object.keys(found.exits).filter((rule) => found.exits[rule] === i + 1).join(", ") || "–"]);
  const probabilities = found.predictions[0].probabilities;
  const series = probabilities && !Array.isArray(probabilities)
    ? Object.keys(probabilities).slice(0, 6).map((label) => ({ name: label, points: found.predictions.map((one, i) => [i + 1, one.probabilities[label]]) })) : [];
  const note = found.exit_heads
    ? "Each depth has a head that was trained for it; a rule stops where it is sure enough."
    : "The last layer's head, asked early: it was trained for the last layer only (finetune with --set exits=true trains one for each).";
  return panel("What it would answer at each depth", note, table(["depth", "answer", "rules that stop here"], rows),
    series.length ? lines(series, { x: "layer", y: "probability" }) : null);
}

function summary(one) {
  if (one.label !== undefined) return `${one.label} (${percent(Math.max(...Object.values(one.probabilities)))})`;
  if (one.value !== undefined) return one.value.toFixed(3);
  if (one.tags) return one.tags.join(" ");
  return "";
}

function tokenTable(found) {
  return table(["token", ...found.distance.map((_, i) => String(i + 1))],
    found.tokens.map((token, place) => [token, ...found.distance.map((row) => row[place].toFixed(2))]));
}

function attention(found) {
  const layer = element("select", {}, found.attention.map((_, i) => element("option", { value: i }, `layer ${i + 1}`)));
  const head = element("select", {}, found.attention[0].map((_, i) => element("option", { value: i }, `head ${i + 1}`)));
  const picture = element("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Attention" });
  const draw = () => picture.replaceChildren(heatmap(found.attention[layer.value][head.value], found.tokens,
    `Attention of layer ${Number(layer.value) + 1}, head ${Number(head.value) + 1}, from each token (rows) to each (columns)`));
  layer.addEventListener("change", draw);
  head.addEventListener("change", draw);
  draw();
  return panel("Attention", "From each token (rows) to each token (columns).",
    element("div", { class: "columns" }, field("Layer", layer), field("Head", head)), picture);
}
