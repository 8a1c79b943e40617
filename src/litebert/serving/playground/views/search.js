// Search over pasted lines: the texts nearest to a question, by the cosine of their vectors.

import { ask } from "../api.js";
import { area, bar, chips, element, field } from "../dom.js";
import { asker } from "./asking.js";

const LINES = [
  "The ferry leaves every morning at seven.", "Bread is baked in the old mill.", "The museum shows ships and sails.",
  "Children swim in the lake in summer.", "The train to the coast takes two hours.", "A small shop sells honey and cheese.",
  "The doctor sees patients on Tuesdays.", "Snow closed the road over the pass.",
].join("\n");
const QUESTIONS = ["How do I get to the sea?", "Where can I buy something to eat?", "I have a sore throat."];

export function searchView(context) {
  const question = element("input", { type: "text", value: context.get("question", QUESTIONS[0]) });
  const lines = area(context.get("lines", LINES), 9);
  const output = element("div", { class: "panel", "aria-live": "polite" });
  const { button, run } = asker("Search", output, context, async () => {
    context.set({ question: question.value, lines: lines.value });
    const texts = lines.value.split("\n").filter((line) => line.trim());
    if (!texts.length) throw new Error("Paste some lines to search in first.");
    const [asked, ...others] = await vectors(context.model, [question.value, ...texts]);
    const scored = others.map((vector, place) => [texts[place], dot(asked, vector)]).sort((a, b) => b[1] - a[1]);
    const [best, worst] = [scored[0][1], scored[scored.length - 1][1]];
    return [
      ...scored.map(([text, score], place) => bar(text, 0.08 + 0.92 * (score - worst) / (best - worst || 1), score.toFixed(3), place ? "long" : "long first")),
      element("p", { class: "note" }, "The number is the cosine of the two vectors; bars are drawn from the farthest to the nearest line."),
    ];
  });
  question.addEventListener("keydown", (event) => event.key === "Enter" && run());
  run();
  return element("div", {},
    element("p", { class: "lead" }, "Texts as vectors: the nearest line comes first. Encoders that were trained to compare sentences find meanings; one that only filled masks finds like words."),
    element("div", { class: "panel" }, field("Question", question), chips("Examples", QUESTIONS, (text) => { question.value = text; run(); }),
      field("Lines to search", lines), button),
    output);
}

// As many requests as the service's limit of inputs makes of it.
async function vectors(model, texts) {
  const found = [];
  for (let place = 0; place < texts.length; place += model.max_inputs) {
    const inputs = texts.slice(place, place + model.max_inputs);
    found.push(...(await ask(model.id, "embed", { inputs, normalize: true }, { remembered: !place })).embeddings);
  }
  return found;
}

const dot = (a, b) => a.reduce((sum, value, place) => sum + value * b[place], 0);
