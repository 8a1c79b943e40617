// Requests to the service that served this page, and the same requests as text to copy.

const KEY = "litebert-api-key";
export let lastRequest = null; // {method, path, body}

export function forget() {
  lastRequest = null;
}

// What "Copy as curl" copies.
export function remember(method, path, body) {
  lastRequest = { method, path, body };
}

export async function call(method, path, body, { remembered = true } = {}) {
  if (remembered) remember(method, path, body);
  const response = await fetch(path, {
    method,
    headers: headers(body),
    body: body === undefined ? undefined : JSON.stringify(body),
  });
  if (response.status === 401) {
    const key = window.prompt("This service asks for a key:");
    if (key) {
      sessionStorage.setItem(KEY, key);
      return call(method, path, body, { remembered });
    }
  }
  const answer = await response.json();
  if (!response.ok) throw new Error(answer.error?.message ?? answer.error ?? response.statusText);
  return answer;
}

export const get = (path) => call("GET", path, undefined, { remembered: false });
export const post = (path, body, options) => call("POST", path, body, options);
export const ask = (model, route, body, options) =>
  post(`/v1/models/${encodeURIComponent(model)}/${route}`, body, options);

function headers(body) {
  const found = body === undefined ? {} : { "Content-Type": "application/json" };
  const key = sessionStorage.getItem(KEY);
  return key ? { ...found, Authorization: `Bearer ${key}` } : found;
}

export function asCurl({ method, path, body }) {
  const quoted = (text) => `'${text.replaceAll("'", "'\\''")}'`;
  const key = sessionStorage.getItem(KEY) ? " -H \"Authorization: Bearer $LITEBERT_API_KEY\"" : "";
  const data = body === undefined ? "" : ` -H 'Content-Type: application/json' -d ${quoted(JSON.stringify(body))}`;
  return `curl -s -X ${method} ${location.origin}${path}${key}${data}`;
}

export function asPython({ method, path, body }) {
  const key = sessionStorage.getItem(KEY) ? '"Authorization": "Bearer " + os.environ["LITEBERT_API_KEY"]' : "";
  const data = body === undefined ? "" : `\n    data=json.dumps(${literal(body)}).encode(),`;
  const headers = [body === undefined ? "" : '"Content-Type": "application/json"', key].filter(Boolean).join(", ");
  const json = data + (headers ? `\n    headers={${headers}},` : "");
  return `import json, ${key ? "os, " : ""}urllib.request\n\nrequest = urllib.request.Request(\n    ${JSON.stringify(location.origin + path)},${json}\n    method=${JSON.stringify(method)},\n)\nprint(json.load(urllib.request.urlopen(request)))`;
}

function literal(value) {
  if (value === null || value === undefined) return "None";
  if (value === true) return "True";
  if (value === false) return "False";
  if (Array.isArray(value)) return `[${value.map(literal).join(", ")}]`;
  if (typeof value === "object")
    return `{${Object.entries(value).map(([key, one]) => `${JSON.stringify(key)}: ${literal(one)}`).join(", ")}}`;
  return JSON.stringify(value);
}
