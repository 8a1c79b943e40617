// The routes of /openapi.json as a page; nothing is loaded from elsewhere.

import { element } from "./dom.js";

const specification = await (await fetch("/openapi.json")).json();
const resolve = (schema) => schema?.$ref ? specification.components.schemas[schema.$ref.split("/").pop()] : schema;

function typeOf(schema) {
  if (!schema) return "";
  if (schema.$ref) return schema.$ref.split("/").pop();
  if (schema.anyOf) return schema.anyOf.map(typeOf).join(" | ");
  if (schema.type === "array") return `[${typeOf(schema.items)}]`;
  if (schema.enum) return schema.enum.map((one) => JSON.stringify(one)).join(" | ");
  return schema.const !== undefined ? JSON.stringify(schema.const) : schema.type ?? "anything";
}

// The fields of a schema; those of schemas within it, where it is a form of input, below.
function fieldsOf(schema) {
  const found = resolve(schema);
  if (!found?.properties) return element("p", {}, typeOf(schema));
  return element("ul", {}, Object.entries(found.properties).map(([name, one]) =>
    element("li", {}, element("code", {}, name), ` ${typeOf(one)}`,
      found.required?.includes(name) ? element("strong", {}, " needed") : one.default != null ? `, by default ${JSON.stringify(one.default)}` : "",
      one.description ? ` — ${one.description}` : "",
      (one.anyOf ?? [one]).filter((part) => part.$ref).map((part) => element("div", {}, element("em", {}, typeOf(part)), fieldsOf(part))))));
}

const content = (part) => part?.content?.["application/json"]?.schema;
const anchor = (method, path) => `${method}-${path.replace(/\W+/g, "-")}`;

function section(method, path, route) {
  const asked = content(route.requestBody), answered = content(route.responses?.["200"]);
  const errors = Object.entries(route.responses ?? {}).filter(([status]) => status !== "200").map(([status, one]) => `${status} ${one.description}`);
  return element("section", { class: "panel", id: anchor(method, path) },
    element("h3", {}, element("code", {}, `${method.toUpperCase()} ${path}`)), element("p", {}, route.description ?? route.summary ?? ""),
    element("div", { class: "columns two" },
      asked ? element("div", {}, element("span", { class: "caption" }, "Request"), fieldsOf(asked)) : null,
      answered ? element("div", {}, element("span", { class: "caption" }, "Answer"), fieldsOf(answered)) : null),
    errors.length ? element("details", {}, element("summary", {}, "Other answers"), element("ul", {}, errors.map((text) => element("li", {}, text)))) : null);
}

const routes = Object.entries(specification.paths).flatMap(([path, methods]) => Object.entries(methods).map(([method, route]) => [method, path, route]));
const tags = [...new Set(routes.map(([, , route]) => route.tags?.[0] ?? "other"))];
const inTag = (tag) => routes.filter(([, , route]) => (route.tags?.[0] ?? "other") === tag);

document.getElementById("routes").replaceChildren(
  element("div", { class: "panel" }, tags.map((tag) => element("p", {}, element("strong", {}, `${tag} `),
    inTag(tag).map(([method, path]) => [element("a", { href: `#${anchor(method, path)}` }, path), " "])))),
  ...tags.flatMap((tag) => [element("h2", {}, tag), ...inTag(tag).map(([method, path, route]) => section(method, path, route))]));
