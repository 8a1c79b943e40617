// Two models, or two precisions of one, on the same text.

import { ask } from "../api.js";
import { element, field, panel, percent } from "../dom.js";
import { asker, formOf, inputForm, shown, usage } from "./asking.js";

export function compareView(context) {
  const options = () => context.fitting.map((one) => element("option", { value: one.id }, `${one.id} (${one.precision})`));
  const left = element("select", {}, options()), right = element("select", {}, options());
  left.value = context.get("left", context.model.id);
  right.value = context.get("right", context.fitting.find((one) => one.id !== left.value)?.id ?? left.value);
  const chosen = () => [left, right].map((select) => context.fitting.find((one) => one.id === select.value) ?? context.model);
  const output = element("div", { "aria-live": "polite" });
  const form = inputForm(formOf(context.model), context, () => run());
  const { button, run } = asker("Compare", output, context, async () => {
    form.remember();
    const both = chosen(), inputs = form.read();
    context.set({ left: both[0].id, right: both[1].id });
    const answers = [];
    for (const model of both) answers.push(await ask(model.id, "predict", { inputs })); // one after the other: the times are comparable
    const [one, other] = answers.map((answer) => answer.predictions[0]);
    return [
      panel("", "", element("p", { class: "verdict" }, same(one, other) ? "The same answer" : "Different answers", element("small", {}, difference(one, other)))),
      element("div", { class: "columns two" }, answers.map((answer, place) => panel(`${answer.model} · ${both[place].precision}`, "",
        shown(answer.predictions[0], form.values()), usage(answer, answer.predictions[0])))),
    ];
  });
  for (const select of [left, right]) select.addEventListener("change", run);
  run();
  const alone = context.fitting.length < 2 ? element("p", { class: "note" }, "Only one model is served. To compare, serve two: ",
    element("code", {}, "litebert serve exact=tuned@fp32 small=tuned@int8")) : null;
  return element("div", {},
    element("p", { class: "lead" }, "The same text, two models: what does int8 cost, what does more training bring?"), alone,
    element("div", { class: "panel" }, element("div", { class: "columns" }, field("Left", left), field("Right", right)), form.node, button), output);
}

function same(one, other) {
  return ["label", "choice", "text"].every((key) => one[key] === other[key]) && String(one.tags) === String(other.tags)
    && (one.value === undefined || Math.abs(one.value - other.value) < 0.05);
}

function difference(one, other) {
  if (one.value !== undefined && other.value !== undefined) return `${Math.abs(one.value - other.value).toFixed(3)} apart`;
  if (!one.probabilities || !other.probabilities) return "";
  const gaps = Object.keys(one.probabilities).map((key) => Math.abs(one.probabilities[key] - (other.probabilities[key] ?? 0)));
  return gaps.length ? `probabilities at most ${percent(Math.max(...gaps))} apart` : "";
}
