// The playground: one page, a view for each question one may put to an encoder. A view is a
// function (context) -> element; everything that it shows is in the address, so a link restores it.

import { asCurl, asPython, forget, get, lastRequest } from "./api.js";
import { compact, element, panel } from "./dom.js";
import { askView } from "./views/ask.js";
import { compareView } from "./views/compare.js";
import { designView } from "./views/design.js";
import { layersView } from "./views/layers.js";
import { maskView } from "./views/mask.js";
import { orderView } from "./views/order.js";
import { runsView } from "./views/runs.js";
import { searchView } from "./views/search.js";

// name -> title, view, the ability a model must have (null: none is asked), and what to do without
const VIEWS = {
  ask: ["Ask", askView, "predict", "None of the models here was fine-tuned for a task. Fine-tune one on a table of your own and serve it:", "litebert finetune RUN --task classify --train my.csv --out tuned\nlitebert serve tuned"],
  search: ["Search", searchView, "embed"],
  mask: ["Behind a mask", maskView, "fill-mask", "None of the models here has its masked-language head any more: fine-tuning replaces it. Serve the pretrained run beside the tuned one:", "litebert serve tuned RUN"],
  order: ["Which came first?", orderView, "order", "None of the models here has a sentence-order head. ALBERT's pretraining leaves one; serve such a run:", "litebert serve tuned RUN"],
  layers: ["Through the layers", layersView, "layers"],
  design: ["Design a model", designView, null],
  runs: ["Runs", runsView, null, "The service was not told where training runs are. Name a folder; runs in it are followed while they train:", "litebert serve tuned --runs FOLDER"],
  compare: ["Compare", compareView, "predict", "Comparing needs a fine-tuned model, or better two:", "litebert serve exact=tuned@fp32 small=tuned@int8"],
};

const main = document.getElementById("main");
const chooser = document.getElementById("model");
const status = document.getElementById("status");
let models = [], runs = false, leave = null;

function address() {
  const [name, query = ""] = location.hash.replace(/^#\/?/, "").split("?");
  return { name, parameters: new URLSearchParams(query) };
}

function link(name, parameters) {
  const query = new URLSearchParams(parameters).toString();
  return `#/${name}${query ? `?${query}` : ""}`;
}

function possible(name) {
  const [, , ability] = VIEWS[name];
  if (name === "runs") return runs;
  return ability === null || models.some((model) => model.abilities.includes(ability));
}

function show() {
  leave?.();
  leave = null;
  forget();
  status.textContent = "";
  let { name, parameters } = address();
  if (!VIEWS[name]) name = Object.keys(VIEWS).find(possible);
  const [title, view, ability, missing, command] = VIEWS[name];
  const fitting = models.filter((model) => ability === null || model.abilities.includes(ability));
  const model = fitting.find((one) => one.id === parameters.get("model")) ?? fitting[0] ?? models[0];
  choose(fitting, model, ability !== null && name !== "compare");
  navigate(name, parameters.get("model"));
  document.title = `${title} · litebert`;
  const context = {
    model, models, fitting,
    get: (key, otherwise = "") => parameters.get(key) ?? otherwise,
    // Remember values in the address without building the view anew.
    set(values) {
      for (const [key, value] of Object.entries(values)) parameters.set(key, value);
      history.replaceState(null, "", link(name, parameters));
    },
    busy: (text) => { status.textContent = text; },
    say(text) { // for a moment
      status.textContent = text;
      setTimeout(() => { if (status.textContent === text) status.textContent = ""; }, 4000);
    },
    onLeave(callback) { leave = callback; },
  };
  if (!possible(name)) {
    main.replaceChildren(element("h2", {}, title), panel("", missing, element("pre", { tabindex: "0" }, command)));
    return;
  }
  const facts = ability !== null && name !== "compare" ? factsOf(model) : null;
  main.replaceChildren(element("h2", {}, title), ...[facts].filter(Boolean), view(context), copying(context));
}

function navigate(name, model) {
  const here = model ? { model } : {};
  const links = Object.keys(VIEWS).map((other) => element("a", { href: link(other, here), class: possible(other) ? null : "off",
    "aria-current": other === name ? "page" : null }, VIEWS[other][0]));
  document.getElementById("views").replaceChildren(...links);
  links.find((one) => one.hasAttribute("aria-current"))?.scrollIntoView({ block: "nearest", inline: "center" });
}

// What one wants to know of a model before asking it.
function factsOf(model) {
  const fact = (value, what) => element("li", {}, element("strong", {}, value), ` ${what}`);
  return element("ul", { class: "facts", "aria-label": "The model" },
    fact(model.id, model.task ? `fine-tuned: ${model.task}` : "pretrained"),
    fact(compact(model.parameters), "parameters"),
    model.shared ? fact("1 layer", `applied ${model.layers} times`) : fact(String(model.layers), "layers"),
    fact(String(model.hidden_size), "wide"), fact(model.precision, ""), fact(String(model.max_length), "tokens at most"));
}

function choose(fitting, model, asked) {
  chooser.replaceChildren(...fitting.map((one) => element("option", { value: one.id }, one.id)));
  chooser.disabled = fitting.length < 2;
  chooser.parentElement.hidden = !asked; // where no model is asked there is none to choose
  if (model) chooser.value = model.id;
}

chooser.addEventListener("change", () => {
  const { name, parameters } = address();
  parameters.set("model", chooser.value);
  location.hash = link(name || Object.keys(VIEWS).find(possible), parameters);
});

function copying(context) {
  const shown = element("pre", { hidden: true, tabindex: "0" });
  const button = (label, write, asked) => element("button", { type: "button", onclick: async () => {
    if (asked && !lastRequest) return context.say("Ask something first.");
    shown.hidden = false;
    shown.textContent = write(lastRequest);
    try {
      await navigator.clipboard.writeText(shown.textContent);
      context.say("Copied.");
    } catch {
      context.say("Here it is, to be copied by hand.");
    }
  } }, label);
  return element("div", { class: "taking" },
    element("div", { class: "row" }, element("span", { class: "caption" }, "Take it with you:"),
      button("Copy as curl", asCurl, true), button("Copy as Python", asPython, true), button("Copy the link", () => location.href, false)), shown);
}

async function begin() {
  try {
    [models, runs] = await Promise.all([get("/v1/models").then((found) => found.data), get("/v1/runs").then((found) => found.enabled)]);
    window.addEventListener("hashchange", () => { show(); main.focus(); });
    show();
  } catch (error) {
    main.replaceChildren(element("p", { class: "problem", role: "alert" }, `The service does not answer: ${error.message}`));
  }
}

begin();
