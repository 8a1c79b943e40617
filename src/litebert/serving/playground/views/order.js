// Which came first? Two sentences, and the verdict of the sentence-order head (ALBERT, 3.1).

import { ask } from "../api.js";
import { area, bar, chips, element, percent } from "../dom.js";
import { asker } from "./asking.js";

const EXAMPLES = [
  { first: "The town had no doctor for thirty years.", second: "Then, in 1921, a young woman opened a practice by the church." },
  { first: "It was closed again only two years later.", second: "The railway reached the valley in 1890." },
  { first: "He packed a small bag and left before dawn.", second: "By noon he had crossed the border." },
];
const UNSURE = 0.05; // this near to one half is no verdict

export function orderView(context) {
  const first = area(context.get("first", EXAMPLES[0].first), 2);
  const second = area(context.get("second", EXAMPLES[0].second), 2);
  first.setAttribute("aria-label", "First sentence");
  second.setAttribute("aria-label", "Second sentence");
  const output = element("div", { class: "panel", "aria-live": "polite" });
  const { button, run } = asker("Which came first?", output, context, async () => {
    context.set({ first: first.value, second: second.value });
    const answer = await ask(context.model.id, "order", { first: first.value, second: second.value });
    return [element("p", { class: "verdict" }, verdict(answer.in_order)),
      bar("as written here", answer.in_order, percent(answer.in_order)), bar("the other way round", answer.swapped, percent(answer.swapped)),
      element("p", { class: "note" }, "One half is chance. Order is hard to learn: small encoders stay near chance for millions of tokens.")];
  });
  const fill = (one) => {
    [first.value, second.value] = [one.first, one.second];
    run();
  };
  const swap = () => fill({ first: second.value, second: first.value });
  const draggable = (input) => {
    const box = element("div", { class: "sentence", draggable: "true",
      ondragstart: (event) => event.dataTransfer.setData("text/plain", "sentence"),
      ondragover: (event) => { event.preventDefault(); box.classList.add("over"); },
      ondragleave: () => box.classList.remove("over"),
      ondrop: (event) => { event.preventDefault(); box.classList.remove("over"); swap(); } },
    element("span", { class: "grip", "aria-hidden": "true" }, "⠿"), input);
    return box;
  };
  run();
  return element("div", {},
    element("p", { class: "lead" }, "Sentence order is the loss that ALBERT put in the place of next-sentence prediction: two neighbouring sentences, swapped or not. Drag one over the other, or swap them, and see whether the verdict turns."),
    element("div", { class: "panel" }, draggable(first), draggable(second), chips("Examples", EXAMPLES, fill),
      element("div", { class: "row" }, button, element("button", { type: "button", onclick: swap }, "Swap"))),
    output);
}

function verdict(inOrder) {
  if (Math.abs(inOrder - 0.5) < UNSURE) return "The model cannot tell";
  return inOrder > 0.5 ? "In the order they are written here" : "The other way round";
}
