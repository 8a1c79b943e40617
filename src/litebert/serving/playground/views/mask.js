// Words behind a mask: click words to hide them, see what the encoder expects there.

import { ask } from "../api.js";
import { area, bar, chips, element, field, panel, percent } from "../dom.js";
import { asker } from "./asking.js";

// A sentence, and the words behind masks at first.
const EXAMPLES = [
  ["The ferry crossed the river in the early morning.", "4"], ["The film was long, loud and utterly boring.", "8,7"],
  ["She was born in a small village in the north of the country.", "6,12"], ["He opened the door and walked into the room.", "3"],
];
const ENDING = /[.,;:!?]+$/;

export function maskView(context) {
  const { model } = context;
  const text = area(context.get("text", EXAMPLES[0][0]), 2);
  const words = element("p", { class: "text", role: "group", "aria-label": "Words to mask" });
  const output = element("div", { class: "columns", "aria-live": "polite" });
  let hidden = new Set(context.get("hidden", EXAMPLES[0][1]).split(",").filter(Boolean).map(Number));
  const { button, run } = asker("Show candidates", output, context, async () => {
    context.set({ text: text.value, hidden: [...hidden].join(",") });
    if (!hidden.size) return panel("", "Click a word above to put it behind a mask.");
    const covered = [];
    let number = -1;
    const masked = text.value.split(/(\s+)/).map((part) => {
      if (!part.trim() || !hidden.has(++number)) return part;
      covered.push(part.replace(ENDING, ""));
      return model.mask_token + (part.match(ENDING)?.[0] ?? "");
    }).join("");
    const answer = await ask(model.id, "fill-mask", { inputs: masked, top: 8 });
    return answer.masks[0].map((candidates, place) => panel(`Mask ${place + 1}, over “${covered[place]}”`, "", candidates.map((one) =>
      bar(one.text, one.probability, percent(one.probability), same(one.text, covered[place]) ? "first" : ""))));
  });
  const rebuild = () => {
    const found = text.value.split(/\s+/).filter(Boolean);
    hidden = new Set([...hidden].filter((place) => place < found.length));
    words.replaceChildren(...found.flatMap((word, place) => {
      const one = element("button", { type: "button", class: "word", "aria-pressed": String(hidden.has(place)), onclick: () => {
        hidden.has(place) ? hidden.delete(place) : hidden.add(place);
        one.setAttribute("aria-pressed", String(hidden.has(place)));
        run();
      } }, word);
      return [one, " "];
    }));
  };
  const fill = (sentence) => {
    [text.value, hidden] = [sentence, new Set(EXAMPLES.find(([one]) => one === sentence)[1].split(",").map(Number))];
    rebuild();
    run();
  };
  text.addEventListener("input", rebuild);
  rebuild();
  run();
  return element("div", {},
    element("p", { class: "lead" }, "What pretraining taught: guess a word from the words around it. Click words to mask them; the word that was there is set in bold when it is among the guesses."),
    element("div", { class: "panel" }, field("Sentence", text), chips("Examples", EXAMPLES.map(([one]) => one), fill),
      element("span", { class: "caption" }, "Click to mask:"), words, button), output);
}

const same = (one, other) => one.trim().toLowerCase() === other.toLowerCase();
