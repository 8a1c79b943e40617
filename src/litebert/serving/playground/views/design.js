// Design a model: sliders for its shape; parameters, FLOPs and memory beside the paper's models.

import { get, post } from "../api.js";
import { colour, legend } from "../charts.js";
import { compact, element, field, panel, stack, table } from "../dom.js";

// name -> label, lowest, highest, step
const SLIDERS = {
  vocab_size: ["Vocabulary V", 1000, 120000, 1000], embedding_size: ["Embedding size E", 16, 4096, 16],
  hidden_size: ["Hidden size H", 64, 4096, 64], num_hidden_layers: ["Layers L", 1, 48, 1],
  num_attention_heads: ["Attention heads", 1, 64, 1], max_length: ["Tokens of a text", 16, 512, 16],
};
const SHARING = { all: "everything (ALBERT)", attention: "attention only", ffn: "feed-forward only", none: "nothing (BERT)" };
const START = { vocab_size: 30000, embedding_size: 128, hidden_size: 768, num_hidden_layers: 12, num_attention_heads: 12, max_length: 128 };
const PARTS = ["embeddings", "projection", "attention", "feed_forward", "pooler"];

export function designView(context) {
  const output = element("div", { "aria-live": "polite" }), beside = element("div", {}), inputs = {}, slides = {};
  const controls = Object.entries(SLIDERS).map(([name, [label, low, high, step]]) => {
    const value = Number(context.get(name, START[name]));
    const slide = element("input", { type: "range", min: low, max: high, step, value, "aria-label": label });
    const number = element("input", { type: "number", min: low, max: high, value });
    slide.addEventListener("input", () => { number.value = slide.value; update(); });
    number.addEventListener("change", () => { slide.value = number.value; update(); });
    [inputs[name], slides[name]] = [number, slide];
    const box = field(label, number);
    box.className = "slider";
    number.before(slide);
    return box;
  });
  const sharing = element("select", {}, Object.entries(SHARING).map(([value, label]) => element("option", { value }, label)));
  sharing.value = context.get("sharing", "all");
  sharing.addEventListener("change", () => update());
  const take = (shape) => {
    for (const name of Object.keys(inputs)) if (name !== "max_length") inputs[name].value = slides[name].value = shape[name];
    sharing.value = shape.sharing;
    update();
  };
  let newest = 0;
  async function update() {
    const mine = ++newest;
    const shape = Object.fromEntries(Object.entries(inputs).map(([name, input]) => [name, Number(input.value)]));
    shape.sharing = sharing.value;
    context.set(shape);
    try {
      const [own, known] = await Promise.all([post("/v1/design", shape), get(`/v1/designs?max_length=${shape.max_length}`)]);
      if (mine !== newest) return;
      output.replaceChildren(...yours(own), ...charts([own, ...known.designs]));
      beside.replaceChildren(compared([own, ...known.designs], take));
    } catch (error) {
      if (mine === newest) output.replaceChildren(element("p", { class: "problem", role: "alert" }, error.message));
    }
  }
  update();
  return element("div", {},
    element("p", { class: "lead" }, "ALBERT's two ideas in numbers. Factorised embeddings: V × E + E × H instead of V × H. Shared layers: one layer's parameters, whatever the depth; the compute stays. The arithmetic is that of ", element("code", {}, "litebert plan"), "."),
    element("div", { class: "columns two" }, element("div", { class: "panel controls" }, controls, field("Layers share", sharing)), output), beside);
}

function yours(own) {
  return [element("section", { class: "panel" },
    element("p", { class: "verdict" }, `${own.parameters.total.toLocaleString("en")} parameters`),
    element("ul", { class: "facts" }, ["memory_fp32", "memory_int8"].map((key) => element("li", {}, element("strong", {}, `${compact(own[key])}B`), ` in ${key.slice(7)}`)),
      element("li", {}, element("strong", {}, compact(own.flops_per_token)), " FLOPs a token")),
    PARTS.filter((name) => own.parameters[name]).map((name) => stack(name.replace("_", "-"), [[own.parameters[name] / own.parameters.total, colour(PARTS.indexOf(name))]], compact(own.parameters[name]))))];
}

function charts(designs) {
  const most = Math.max(...designs.map((one) => one.parameters.total)), flops = Math.max(...designs.map((one) => one.flops_per_token));
  const look = (one) => (one.name === "yours" ? "first" : "");
  return [
    panel("Parameters", "", legend(PARTS.map((name) => name.replace("_", "-"))), designs.map((one) => stack(one.name,
      PARTS.map((name, place) => [(one.parameters[name] ?? 0) / most, colour(place)]), compact(one.parameters.total), look(one)))),
    panel("Compute: FLOPs a token", "", designs.map((one) => stack(one.name, [[one.flops_per_token / flops, "var(--accent)"]], compact(one.flops_per_token), look(one)))),
  ];
}

function compared(designs, take) {
  const rows = designs.map((one) => [
    one.name === "yours" ? "yours" : element("button", { type: "button", onclick: () => take(one.shape) }, one.name),
    one.shape.num_hidden_layers, one.shape.hidden_size, one.shape.embedding_size, one.shape.sharing === "none" ? "no" : one.shape.sharing,
    compact(one.parameters.total), one.paper_parameters ? compact(one.paper_parameters) : "–",
    compact(one.flops_per_token), `${compact(one.memory_fp32)}B`, `${compact(one.memory_int8)}B`]);
  return panel("Beside Table 1 of the ALBERT paper", "Choose a row to begin from it. The paper's own figures stand beside ours; they are rounded there, and count a little differently for xxlarge (235 M).",
    table(["model", "layers", "H", "E", "shared", "parameters", "the paper says", "FLOPs a token", "fp32", "int8"], rows, 0));
}
