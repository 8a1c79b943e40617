// Words behind a mask: click words to hide them, see what the encoder expects there.

import { ask } from "../api.js";
import { area, bar, element, field } from "../dom.js";
import { asker } from "./asking.js";

export function maskView(context) {
  const { model } = context;
  const text = area(context.get("text", "The ferry crossed the river in the early morning."), 2);
  const words = element("p", { class: "text", role: "group", "aria-label": "Words to mask" });
  const output = element("div", { class: "columns", "aria-live": "polite" });
  let hidden = new Set(context.get("hidden", "4").split(",").filter(Boolean).map(Number));
  const { button, run } = asker("Show candidates", output, context, async () => {
    context.set({ text: text.value, hidden: [...hidden].join(",") });
    if (!hidden.size) return element("p", { class: "note" }, "Click a word to put it behind a mask.");
    const parts = text.value.split(/(\s+)/);
    let number = -1;
    const masked = parts.map((part) => {
      if (!part.trim()) return part;
      number += 1;
      return hidden.has(number) ? model.mask_token + (part.match(/[.,;:!?]+$/)?.[0] ?? "") : part;
    }).join("");
    const answer = await ask(model.id, "fill-mask", { inputs: masked, top: 8 });
    return answer.masks[0].map((candidates, place) => element("div", { class: "panel" },
      element("h3", {}, `Mask ${place + 1}`), candidates.map((one) => bar(one.text, one.probability))));
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
  text.addEventListener("input", rebuild);
  rebuild();
  run();
  return element("div", {},
    element("p", { class: "lead" }, "What pretraining taught: guess a word from the words around it. Click words to mask them."),
    element("div", { class: "panel" }, field("Sentence", text), words, button), output);
}
