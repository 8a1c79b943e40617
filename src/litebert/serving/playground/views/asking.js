// What the views that ask a model have in common: inputs by kind of task, a button, an answer.

import { area, bar, bars, chips, element, field, marked, percent } from "../dom.js";

// form -> what is typed in, how it becomes an input, examples
const FORMS = {
  text: {
    fields: { text: ["Text", 3] },
    input: ({ text }) => text,
    examples: [
      { text: "A quiet film that stays with you for days." },
      { text: "Two hours of noise, and not one idea." },
      { text: "The ferry was late, but the crossing was calm." },
    ],
  },
  number: {
    fields: { text: ["Text", 2], text_b: ["Second text, if the model compares two", 2] },
    input: ({ text, text_b }) => (text_b.trim() ? { text_a: text, text_b } : text),
    examples: [{ text: "A man is playing a guitar.", text_b: "Someone makes music." }],
  },
  pair: {
    fields: { text_a: ["First text", 2], text_b: ["Second text", 2] },
    input: ({ text_a, text_b }) => ({ text_a, text_b }),
    examples: [
      { text_a: "A man is playing a guitar.", text_b: "Someone makes music." },
      { text_a: "The shop closes at six.", text_b: "You can buy bread there at eight in the evening." },
    ],
  },
  tag: {
    fields: { text: ["Text", 3] },
    input: ({ text }) => text,
    examples: [
      { text: "Marie Curie moved from Warsaw to Paris in 1891 ." },
      { text: "The University of Oslo is in Norway ." },
    ],
  },
  qa: {
    fields: { question: ["Question", 1], passage: ["Passage", 6] },
    input: ({ question, passage }) => ({ question, passage }),
    examples: [
      {
        question: "When did the bridge open?",
        passage: "The old bridge was built by the town's own masons. It opened in 1874, two years late, and carried carts until the railway came.",
      },
    ],
  },
  choice: {
    fields: { passage: ["Passage", 4], question: ["Question", 1], options: ["Options, one a line", 4] },
    input: ({ passage, question, options }) => ({ passage, question, options: options.split("\n").filter((line) => line.trim()) }),
    examples: [
      {
        passage: "Ana packed an umbrella and a thick coat.", question: "What did she expect?",
        options: "Rain and cold\nA hot day\nA long flight\nGuests",
      },
    ],
  },
};
// Which form an input has is told by the model's own example.
export function formOf(model) {
  const example = model.example ?? "";
  const known = model.labels.length || !model.task; // a model of numbers has no labels
  if (typeof example === "string") return FORMS[model.labels.includes("O") ? "tag" : known ? "text" : "number"];
  return FORMS[example.options ? "choice" : example.question ? "qa" : "pair"];
}

// The fields of a form; `read()` gives the input as the service takes it.
export function inputForm(form, context, changed) {
  const inputs = Object.fromEntries(Object.entries(form.fields).map(([name, [, rows]]) =>
    [name, area(context.get(name, form.examples[0][name] ?? ""), rows)]));
  const values = () => Object.fromEntries(Object.entries(inputs).map(([name, input]) => [name, input.value]));
  const fill = (example) => {
    for (const [name, input] of Object.entries(inputs)) input.value = example[name] ?? "";
    changed();
  };
  for (const input of Object.values(inputs))
    input.addEventListener("keydown", (event) => {
      if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) changed();
    });
  const node = element("div", {},
    Object.entries(form.fields).map(([name, [label]]) => field(label, inputs[name])),
    chips("Examples", form.examples, fill));
  return { node, read: () => form.input(values()), remember: () => context.set(values()), text: () => values().text ?? values().passage ?? values().text_a };
}

// A button that asks; what goes wrong is said where the answer would be.
export function asker(label, output, context, ask) {
  const button = element("button", { type: "button", class: "main" }, label);
  let newest = 0;
  const run = async () => {
    const mine = ++newest;
    button.disabled = true;
    context.busy("Asking …");
    try {
      const shown = await ask();
      if (mine === newest) output.replaceChildren(...[shown].flat());
      context.busy("");
    } catch (error) {
      if (mine === newest) output.replaceChildren(element("p", { class: "problem", role: "alert" }, error.message));
      context.busy("");
    } finally {
      button.disabled = false;
    }
  };
  button.addEventListener("click", run);
  return { button, run };
}

// A prediction of any kind, as a person reads it.
export function shown(prediction, text) {
  if (Array.isArray(prediction.entities) || Array.isArray(prediction.tags)) return tagged(prediction, text);
  if (prediction.candidates) return answered(prediction, text);
  if (prediction.choice !== undefined) return chosen(prediction);
  if (prediction.value !== undefined) return element("p", {}, element("strong", {}, prediction.value.toFixed(3)));
  return element("div", {}, element("p", {}, element("strong", {}, prediction.label)), bars(prediction.probabilities));
}

function tagged(prediction, text) {
  const words = prediction.offsets ?? [];
  const spans = prediction.tags.map((tag, place) => ({ start: words[place]?.[0], end: words[place]?.[1], label: tag }))
    .filter((span) => span.label !== "O" && span.start !== undefined);
  const joined = [];
  for (const span of spans) {
    const last = joined[joined.length - 1], bare = span.label.replace(/^[BIES]-/, "");
    if (last && span.label.startsWith("I-") && last.label === bare && text.slice(last.end, span.start).trim() === "") last.end = span.end;
    else joined.push({ ...span, label: bare });
  }
  return marked(text, joined);
}

function answered(prediction, text) {
  if (!prediction.text) return element("p", {}, "No answer in this passage.");
  const span = { start: prediction.start, end: prediction.start + Array.from(prediction.text).length, label: "" };
  return element("div", {}, element("p", {}, element("strong", {}, prediction.text)), marked(text, [span]),
    prediction.candidates.slice(0, 5).map((one) => bar(one.text || "(no answer)", one.probability, percent(one.probability))));
}

function chosen(prediction) {
  return element("div", {}, prediction.probabilities.map((value, place) => bar(`Option ${place + 1}${place === prediction.choice ? " ✓" : ""}`, value)));
}

export function usage(answer, prediction) {
  const depth = prediction?.depth ? `, ${prediction.depth} layers` : "";
  const cut = answer.usage.truncated ? "; the text was cut off" : "";
  return element("p", { class: "note" }, `${answer.usage.tokens} tokens, ${answer.usage.milliseconds.toFixed(1)} ms${depth}${cut}`);
}
