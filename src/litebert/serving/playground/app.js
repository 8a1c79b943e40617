// The playground: one page, a view for each question one may put to an encoder. A view is a
// function (context) -> element; everything that it shows is in the address, so a link restores it.

import { asCurl, asPython, get, lastRequest } from "./api.js";
import { element } from "./dom.js";
import { askView } from "./views/ask.js";
import { compareView } from "./views/compare.js";
import { designView } from "./views/design.js";
import { layersView } from "./views/layers.js";
import { maskView } from "./views/mask.js";
import { orderView } from "./views/order.js";
import { runsView } from "./views/runs.js";
import { searchView } from "./views/search.js";

// name -> title, view, and the ability a model must have (null: none is asked)
const VIEWS = {
  ask: ["Ask", askView, "predict"],
  search: ["Search", searchView, "embed"],
  mask: ["Behind a mask", maskView, "fill-mask"],
  order: ["Which came first?", orderView, "order"],
  layers: ["Through the layers", layersView, "layers"],
  design: ["Design a model", designView, null],
  runs: ["Runs", runsView, null],
  compare: ["Compare", compareView, "predict"],
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
  return `#/${name}?${new URLSearchParams(parameters)}`;
}

function possible(name) {
  const [, , ability] = VIEWS[name];
  if (name === "runs") return runs;
  return ability === null || models.some((model) => model.abilities.includes(ability));
}

function show() {
  leave?.();
  leave = null;
  let { name, parameters } = address();
  if (!VIEWS[name] || !possible(name)) name = Object.keys(VIEWS).find(possible);
  const [title, view, ability] = VIEWS[name];
  const fitting = models.filter((model) => ability === null || model.abilities.includes(ability));
  const model = fitting.find((one) => one.id === parameters.get("model")) ?? fitting[0] ?? models[0];
  choose(fitting, model);
  document.getElementById("views").replaceChildren(...Object.keys(VIEWS).filter(possible).map((other) =>
    element("a", { href: link(other, {}), "aria-current": other === name ? "page" : null }, VIEWS[other][0])));
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
    onLeave(callback) { leave = callback; },
  };
  main.replaceChildren(element("h2", {}, title), view(context), copying(context));
}

function choose(fitting, model) {
  chooser.replaceChildren(...fitting.map((one) => element("option", { value: one.id }, one.id)));
  chooser.disabled = fitting.length < 2;
  if (model) chooser.value = model.id;
}

chooser.addEventListener("change", () => {
  const { name, parameters } = address();
  parameters.set("model", chooser.value);
  location.hash = link(name || Object.keys(VIEWS).find(possible), parameters);
});

function copying(context) {
  const shown = element("pre", { hidden: true, tabindex: "0" });
  const button = (label, write) => element("button", { type: "button", onclick: async () => {
    if (!lastRequest) return context.busy("Ask something first.");
    shown.hidden = false;
    shown.textContent = write(lastRequest);
    try {
      await navigator.clipboard.writeText(shown.textContent);
      context.busy("Copied.");
    } catch {
      context.busy("Here it is, to be copied by hand.");
    }
  } }, label);
  return element("div", { class: "panel" },
    element("div", { class: "row" }, button("Copy as curl", asCurl), button("Copy as Python", asPython),
      button("Copy the link", () => location.href)), shown);
}

async function begin() {
  try {
    models = (await get("/v1/models")).data;
    runs = (await get("/v1/runs")).enabled;
    window.addEventListener("hashchange", () => { show(); main.focus(); });
    show();
  } catch (error) {
    main.replaceChildren(element("p", { class: "problem", role: "alert" }, `The service does not answer: ${error.message}`));
  }
}

begin();
