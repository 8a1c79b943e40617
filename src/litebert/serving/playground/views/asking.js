// What the views that ask a model have in common: inputs by kind of task, a button, an answer.

import { colour } from "../charts.js";
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
      { text: "I wanted to love it, and for an hour I did." },
    ],
  },
  number: {
    fields: { text: ["Text", 2], text_b: ["Second text, if the model compares two", 2] },
    input: ({ text, text_b }) => (text_b.trim() ? { text_a: text, text_b } : text),
    examples: [
      { text: "A man is playing a guitar.", text_b: "Someone makes music." },
      { text: "The harbour froze over in January.", text_b: "She bought two loaves of bread." },
    ],
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
      {
        question: "Who paid for the library?",
        passage: "For years the town read what travellers left behind. In 1931 a fishmonger gave her savings, and the library moved into the old customs house.",
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
      {
        passage: "The bakery opens at five. By seven the rye is gone, and only rolls are left.", question: "When should you come for rye bread?",
        options: "Before seven\nAt noon\nIn the evening\nNever",
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
  return { node, read: () => form.input(values()), remember: () => context.set(values()), values };
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

// A prediction of any kind, as a person reads it; `values` are those of the form.
export function shown(prediction, values) {
  const text = values.text ?? values.passage ?? values.text_a;
  if (Array.isArray(prediction.entities) || Array.isArray(prediction.tags)) return tagged(prediction, text);
  if (prediction.candidates) return answered(prediction, text);
  if (prediction.choice !== undefined) return chosen(prediction, values);
  if (prediction.value !== undefined) return verdict(prediction.value.toFixed(3), "");
  return element("div", {}, verdict(prediction.label, percent(prediction.probabilities[prediction.label])), bars(prediction.probabilities));
}

const verdict = (text, beside) => element("p", { class: "verdict" }, element("strong", {}, text), beside ? element("small", {}, beside) : null);

function tagged(prediction, text) {
  const words = prediction.offsets ?? [], found = [];
  prediction.tags.forEach((tag, place) => {
    if (tag === "O" || !words[place]) return;
    const [start, end] = words[place], last = found[found.length - 1], bare = tag.replace(/^[BIES]-/, "");
    const between = last ? Array.from(text).slice(last.end, start).join("") : "x";
    if (last && tag.startsWith("I-") && last.label === bare && !between.trim()) last.end = end;
    else found.push({ start, end, label: bare });
  });
  const kinds = [...new Set(found.map((span) => span.label))].sort();
  for (const span of found) span.colour = colour(kinds.indexOf(span.label));
  return element("div", {}, marked(text, found), found.length ? null : element("p", { class: "note" }, "Nothing was tagged in this text."));
}

function answered(prediction, text) {
  const rows = prediction.candidates.slice(0, 5).map((one, place) => bar(one.text || "(no answer)", one.probability, percent(one.probability), place ? "long" : "long first"));
  if (!prediction.text) return element("div", {}, verdict("No answer in this passage", ""), rows);
  const span = { start: prediction.start, end: prediction.start + Array.from(prediction.text).length, label: "" };
  return element("div", {}, verdict(prediction.text, ""), marked(text, [span]), rows);
}

function chosen(prediction, values) {
  const options = values.options.split("\n").filter((line) => line.trim());
  return element("div", {}, verdict(options[prediction.choice], percent(prediction.probabilities[prediction.choice])),
    prediction.probabilities.map((value, place) => bar(options[place], value, percent(value), place === prediction.choice ? "long first" : "long")));
}

export function usage(answer, prediction) {
  const depth = prediction?.depth ? `, ${prediction.depth} layers` : "";
  const cut = answer.usage.truncated ? "; the text was cut off" : "";
  return element("p", { class: "note" }, `${answer.usage.tokens} tokens, ${answer.usage.milliseconds.toFixed(1)} ms${depth}${cut}.`);
}
