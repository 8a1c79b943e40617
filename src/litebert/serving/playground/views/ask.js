// The model's own task: a text in, classes, tags, an answer or a choice out.

import { ask } from "../api.js";
import { element } from "../dom.js";
import { asker, formOf, inputForm, shown, usage } from "./asking.js";

export function askView(context) {
  const { model } = context;
  const output = element("div", { class: "panel", "aria-live": "polite" });
  const form = inputForm(formOf(model), context, () => run());
  const { button, run } = asker("Ask", output, context, async () => {
    form.remember();
    const answer = await ask(model.id, "predict", { inputs: form.read() });
    const [prediction] = answer.predictions;
    return [shown(prediction, form.values()), usage(answer, prediction)];
  });
  run();
  return element("div", {},
    element("p", { class: "lead" }, "What the model was fine-tuned for. Choose an example or write your own."),
    element("div", { class: "panel" }, form.node, element("div", { class: "row" }, button, element("span", { class: "note" }, "or Ctrl + Enter"))),
    output);
}
