// Which came first? Two sentences, and the verdict of the sentence-order head (ALBERT, 3.1).

import { ask } from "../api.js";
import { area, bar, element } from "../dom.js";
import { asker } from "./asking.js";

export function orderView(context) {
  const first = area(context.get("first", "The town had no doctor for thirty years."), 2);
  const second = area(context.get("second", "Then, in 1921, a young woman opened a practice by the church."), 2);
  first.setAttribute("aria-label", "First sentence");
  second.setAttribute("aria-label", "Second sentence");
  const output = element("div", { class: "panel", "aria-live": "polite" });
  const { button, run } = asker("Which came first?", output, context, async () => {
    context.set({ first: first.value, second: second.value });
    const answer = await ask(context.model.id, "order", { first: first.value, second: second.value });
    return [bar("as written here", answer.in_order), bar("the other way round", answer.swapped)];
  });
  const swap = () => {
    [first.value, second.value] = [second.value, first.value];
    run();
  };
  const draggable = (input) => element("div", { class: "sentence", draggable: "true",
    ondragstart: (event) => event.dataTransfer.setData("text/plain", "sentence"),
    ondragover: (event) => event.preventDefault(),
    ondrop: (event) => { event.preventDefault(); swap(); } },
    element("span", { class: "grip", "aria-hidden": "true" }, "⠿"), input);
  run();
  return element("div", {},
    element("p", { class: "lead" }, "Sentence order is the loss that ALBERT put in the place of next-sentence prediction. Drag one sentence over the other, or swap them."),
    element("div", { class: "panel" }, draggable(first), draggable(second),
      element("div", { class: "row" }, button, element("button", { type: "button", onclick: swap }, "Swap"))),
    output);
}
