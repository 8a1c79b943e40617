// One text through the layers: what would be answered at each depth, where exit rules stop, how far
// each token moves (the paper's Figure 1), and what the heads attend to.

import { ask } from "../api.js";
import { colour, heatmap, heatTable, legend, lines, thumbnail } from "../charts.js";
import { bar, element, field, panel, percent, stack } from "../dom.js";
import { asker, formOf, inputForm } from "./asking.js";

export function layersView(context) {
  const { model } = context;
  const output = element("div", { "aria-live": "polite" });
  const form = inputForm(formOf(model), context, () => run());
  const { button, run } = asker("Follow it", output, context, async () => {
    form.remember();
    const found = await ask(model.id, "layers", { input: form.read(), attention: true });
    return [found.predictions.length ? byDepth(found) : null, moving(found, model), tokens(found, context),
      found.attention ? attention(found, context) : panel("Attention", "Attention is drawn for texts of at most 64 tokens.")].filter(Boolean);
  });
  run();
  const own = model.shared
    ? `${model.id} has one layer, and applies it ${model.layers} times to its own output: every step below is the same weights, refining what they said before.`
    : `${model.id} has ${model.layers} layers, each with weights of its own.`;
  return element("div", {}, element("p", { class: "lead" }, own), element("div", { class: "panel" }, form.node, button), output);
}

const mean = (values) => values.reduce((sum, value) => sum + value, 0) / values.length;

function byDepth(found) {
  const note = found.exit_heads
    ? "Each depth has a head that was trained for it; a rule leaves as soon as it is sure enough, and saves the layers below."
    : "The last layer's head, asked early. It was trained for the last layer only; litebert finetune --set exits=true trains one for each depth, and exit rules with them.";
  const labels = Object.keys(found.predictions[0].probabilities ?? {});
  const rows = found.predictions.map((one, i) => {
    const rules = Object.keys(found.exits).filter((rule) => found.exits[rule] === i + 1);
    const name = element("span", {}, `layer ${i + 1} `, rules.map((rule) => element("small", { class: "note" }, ` ⇥ ${rule}`)));
    const parts = labels.map((label, place) => [one.probabilities[label], colour(place)]);
    return parts.length ? stack(name, parts, percent(Math.max(...Object.values(one.probabilities)))) : bar(name, 0, "");
  });
  const answers = found.predictions.map((one, i) => element("p", { class: "text" }, element("strong", {}, `${i + 1} `), summary(one)));
  return panel("What it would answer after each layer", note, labels.length
    ? [legend(labels), rows, element("p", { class: "note" }, `After the last layer: ${summary(found.predictions.at(-1))}.`)]
    : answers);
}

function summary(one) {
  if (one.label !== undefined) return `${one.label} (${percent(Math.max(...Object.values(one.probabilities)))})`;
  if (one.value !== undefined) return one.value.toFixed(3);
  if (one.tags) return one.tags.join(" ");
  if (one.choice !== undefined) return `option ${one.choice + 1} (${percent(one.probabilities[one.choice])})`;
  return one.text ? `“${one.text}”` : "no answer";
}

function moving(found, model) {
  const note = model.shared
    ? "The distance between what goes into the layer and what comes out of it, over all tokens: Figure 1 of the ALBERT paper, for this text. In the paper it falls with the depth, but not to zero: the layer circles around a resting point rather than reaching it."
    : "The distance between what goes into each layer and what comes out of it, over all tokens: Figure 1 of the ALBERT paper, for this text.";
  return panel("How far the tokens move", note, element("div", { class: "columns two" },
    lines([{ name: "L2 distance", points: found.distance.map((row, i) => [i + 1, mean(row)]) }], { title: "L2 distance", x: "layer", whole: true, from: 0 }),
    lines([{ name: "cosine similarity", points: found.cosine.map((row, i) => [i + 1, mean(row)]) }], { title: "Cosine similarity", x: "layer", whole: true })));
}

function tokens(found, context) {
  const kinds = { "L2 distance": [found.distance, (value) => value.toFixed(1)], "1 − cosine": [found.cosine.map((row) => row.map((value) => 1 - value)), (value) => value.toFixed(2)] };
  const select = element("select", {}, Object.keys(kinds).map((kind) => element("option", {}, kind)));
  select.value = kinds[context.get("moved")] ? context.get("moved") : "L2 distance";
  const place = element("div", {});
  const draw = () => {
    const [values, write] = kinds[select.value];
    place.replaceChildren(heatTable("token", found.tokens, values.map((_, i) => String(i + 1)), found.tokens.map((_, token) => values.map((row) => row[token])), write));
  };
  select.addEventListener("change", () => { context.set({ moved: select.value }); draw(); });
  draw();
  return panel("Token by token", "How far each layer (columns) moves each token (rows); the darkest moved most.", element("div", { style: "max-width: 16rem" }, field("Show", select)), place);
}

function attention(found, context) {
  const layers = found.attention.length;
  const within = (key, count) => Math.min(Math.max(Number(context.get(key, 1)) || 1, 1), count) - 1;
  let layer = within("layer", layers), head = within("head", found.attention[0].length);
  const slider = element("input", { type: "range", min: 1, max: layers, value: layer + 1 });
  const heads = element("div", { class: "heads", role: "group", "aria-label": "Heads" });
  const picture = element("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Attention" });
  const caption = element("p", { class: "caption" });
  const draw = () => {
    heads.replaceChildren(...found.attention[layer].map((values, place) => element("button", { type: "button", "aria-pressed": String(place === head),
      onclick: () => { head = place; move(); } }, thumbnail(values), `head ${place + 1}`)));
    const said = `layer ${layer + 1} of ${layers}, head ${head + 1}`;
    caption.textContent = `Attention of ${said}`;
    picture.replaceChildren(heatmap(found.attention[layer][head], found.tokens, `Attention of ${said}, from each token (rows) to each (columns)`));
  };
  const move = () => {
    context.set({ layer: layer + 1, head: head + 1 });
    draw();
  };
  slider.addEventListener("input", () => { layer = Number(slider.value) - 1; move(); });
  draw();
  return panel("Attention", "Whom each token (rows) looks at (columns). Slide through the layers, choose a head; point at a square for its number.",
    layers > 1 ? field("Layer", slider) : null, heads, caption, picture);
}
