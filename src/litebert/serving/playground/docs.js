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

function fieldsOf(schema) {
  const found = resolve(schema);
  if (!found?.properties) return element("p", {}, typeOf(schema));
  return element("ul", {}, Object.entries(found.properties).map(([name, one]) =>
    element("li", {}, element("code", {}, name), `: ${typeOf(one)}`,
      found.required?.includes(name) ? "" : one.default !== undefined ? `, by default ${JSON.stringify(one.default)}` : "",
      one.description ? ` — ${one.description}` : "")));
}

const content = (part) => part?.content?.["application/json"]?.schema;

document.getElementById("routes").replaceChildren(...Object.entries(specification.paths).flatMap(([path, methods]) =>
  Object.entries(methods).map(([method, route]) => element("section", { class: "panel" },
    element("h3", {}, `${method.toUpperCase()} ${path}`), element("p", {}, route.description ?? route.summary ?? ""),
    content(route.requestBody) ? element("div", {}, element("strong", {}, "Request"), fieldsOf(content(route.requestBody))) : null,
    content(route.responses?.["200"]) ? element("div", {}, element("strong", {}, "Answer"), fieldsOf(content(route.responses["200"]))) : null))));
