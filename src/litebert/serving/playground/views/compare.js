// Two models, or two precisions of one, on the same text.

import { ask } from "../api.js";
import { element, field } from "../dom.js";
import { asker, formOf, inputForm, shown, usage } from "./asking.js";

export function compareView(context) {
  const options = () => context.fitting.map((one) => element("option", { value: one.id }, `${one.id} (${one.precision})`));
  const left = element("select", {}, options()), right = element("select", {}, options());
  left.value = context.get("left", context.model.id);
  right.value = context.get("right", context.fitting.find((one) => one.id !== left.value)?.id ?? left.value);
  const output = element("div", { class: "columns", "aria-live": "polite" });
  const form = inputForm(formOf(context.model), context, () => run());
  const { button, run } = asker("Compare", output, context, async () => {
    form.remember();
    context.set({ left: left.value, right: right.value });
    const inputs = form.read();
    const answers = await Promise.all([left.value, right.value].map((id) => ask(id, "predict", { inputs })));
    return answers.map((answer) => element("div", { class: "panel" }, element("h3", {}, answer.model), shown(answer.predictions[0], form.text()), usage(answer, answer.predictions[0])));
  });
  for (const select of [left, right]) select.addEventListener("change", run);
  run();
  return element("div", {},
    element("p", { class: "lead" }, "The same text, two answers. Serve a folder twice with other precisions to compare them."),
    element("div", { class: "panel" }, element("div", { class: "columns" }, field("Left", left), field("Right", right)), form.node, button), output);
}
