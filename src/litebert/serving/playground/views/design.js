// Design a model: sliders for its shape; parameters, FLOPs and memory beside the paper's models.

import { get, post } from "../api.js";
import { bar, compact, element, field, table } from "../dom.js";

// name -> label, lowest, highest, step
const SLIDERS = {
  vocab_size: ["Vocabulary", 1000, 120000, 1000], embedding_size: ["Embedding size E", 16, 1024, 16],
  hidden_size: ["Hidden size H", 64, 4096, 64], num_hidden_layers: ["Layers", 1, 48, 1],
  num_attention_heads: ["Attention heads", 1, 64, 1], max_length: ["Tokens of a text", 16, 512, 16],
};
const SHARING = { all: "everything (ALBERT)", attention: "attention only", ffn: "feed-forward only", none: "nothing (BERT)" };
const START = { vocab_size: 30000, embedding_size: 128, hidden_size: 768, num_hidden_layers: 12, num_attention_heads: 12, max_length: 128 };

export function designView(context) {
  const output = element("div", { "aria-live": "polite" });
  const inputs = {}, controls = Object.entries(SLIDERS).map(([name, [label, low, high, step]]) => {
    const value = Number(context.get(name, START[name]));
    const slide = element("input", { type: "range", min: low, max: high, step, value, "aria-label": label });
    const number = element("input", { type: "number", min: low, max: high, value });
    slide.addEventListener("input", () => { number.value = slide.value; update(); });
    number.addEventListener("change", () => { slide.value = number.value; update(); });
    inputs[name] = number;
    const box = field(label, number);
    box.className = "slider";
    number.before(slide);
    return box;
  });
  const sharing = element("select", {}, Object.entries(SHARING).map(([value, label]) => element("option", { value }, label)));
  sharing.value = context.get("sharing", "all");
  sharing.addEventListener("change", () => update());
  let newest = 0;
  async function update() {
    const mine = ++newest;
    const shape = Object.fromEntries(Object.entries(inputs).map(([name, input]) => [name, Number(input.value)]));
    shape.sharing = sharing.value;
    context.set(shape);
    try {
      const [own, known] = await Promise.all([post("/v1/design", shape), get(`/v1/designs?max_length=${shape.max_length}`)]);
      if (mine === newest) output.replaceChildren(...drawn(own, known.designs));
    } catch (error) {
      if (mine === newest) output.replaceChildren(element("p", { class: "problem", role: "alert" }, error.message));
    }
  }
  update();
  return element("div", {},
    element("p", { class: "lead" }, "Factorised embeddings and shared layers, in numbers: the same arithmetic as `litebert plan`."),
    element("div", { class: "columns" }, element("div", { class: "panel" }, controls, field("Layers share", sharing)), output));
}

function drawn(own, known) {
  const total = own.parameters.total;
  const parts = Object.entries(own.parameters).filter(([name]) => name !== "total");
  const rows = [{ name: "yours", ...own }, ...known].map((one) => [one.name, compact(one.parameters.total), compact(one.flops_per_token), compact(one.memory_fp32) + "B", compact(one.memory_int8) + "B"]);
  return [
    element("div", { class: "panel" }, element("h3", {}, `${total.toLocaleString("en")} parameters`), parts.map(([name, count]) => bar(name.replace("_", " "), count / total, compact(count)))),
    element("div", { class: "panel" }, element("h3", {}, "Beside the papers' models"), table(["model", "parameters", "FLOPs a token", "weights fp32", "weights int8"], rows, 0)),
  ];
}
