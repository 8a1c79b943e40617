// Search over pasted lines: the texts nearest to a question, by the cosine of their vectors.

import { ask } from "../api.js";
import { area, bar, element, field } from "../dom.js";
import { asker } from "./asking.js";

const LINES = [
  "The ferry leaves every morning at seven.", "Bread is baked in the old mill.", "The museum shows ships and sails.",
  "Children swim in the lake in summer.", "The train to the coast takes two hours.", "A small shop sells honey and cheese.",
].join("\n");

export function searchView(context) {
  const question = element("input", { type: "text", value: context.get("question", "How do I get to the sea?") });
  const lines = area(context.get("lines", LINES), 7);
  const output = element("div", { class: "panel", "aria-live": "polite" });
  const { button, run } = asker("Search", output, context, async () => {
    context.set({ question: question.value, lines: lines.value });
    const texts = lines.value.split("\n").filter((line) => line.trim());
    const answer = await ask(context.model.id, "embed", { inputs: [question.value, ...texts], normalize: true });
    const [asked, ...others] = answer.embeddings;
    const scored = others.map((vector, place) => [texts[place], dot(asked, vector)]).sort((a, b) => b[1] - a[1]);
    return scored.map(([text, score]) => bar(text, (score + 1) / 2, score.toFixed(3)));
  });
  question.addEventListener("keydown", (event) => event.key === "Enter" && run());
  run();
  return element("div", {},
    element("p", { class: "lead" }, "Texts as vectors: the nearest line comes first. Paste your own."),
    element("div", { class: "panel" }, field("Question", question), field("Lines to search", lines), button),
    output);
}

const dot = (a, b) => a.reduce((sum, value, place) => sum + value * b[place], 0);
