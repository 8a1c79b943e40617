// What transformers.js says of exported folders, and onnxruntime-web (wasm) of the same files.
// node transformers_js.mjs MODELS '[{"folder", "task", "dtype", "inputs"}]' prints a JSON list.
import { createRequire } from "node:module";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const [root, jobs] = [process.argv[2], JSON.parse(process.argv[3])];
const require = createRequire(join(process.env.LITEBERT_NODE_MODULES, "x.js"));
const load = (name) => import(pathToFileURL(require.resolve(name)).href);
const { AutoTokenizer, env, pipeline } = await load("@huggingface/transformers");
env.localModelPath = root;
env.allowRemoteModels = false;

async function inWasm(job) {
  const runtime = await load("onnxruntime-web");
  runtime.env.wasm.numThreads = 1;
  const tokenizer = await AutoTokenizer.from_pretrained(job.folder);
  const file = job.dtype === "q8" ? "model_quantized.onnx" : "model.onnx";
  const session = await runtime.InferenceSession.create(
    readFileSync(join(root, job.folder, "onnx", file)), { executionProviders: ["wasm"] });
  const [text, options] = job.inputs;
  const encoded = tokenizer(text, options ?? {});
  const feeds = {};
  for (const name of session.inputNames) {
    const given = encoded[name] ?? encoded.input_ids;
    const data = encoded[name] ? given.data : new BigInt64Array(given.data.length);
    feeds[name] = new runtime.Tensor("int64", data, given.dims);
  }
  const output = (await session.run(feeds))[session.outputNames[0]];
  return { dims: output.dims, data: Array.from(output.data) };
}

async function ids(job) {
  const tokenizer = await AutoTokenizer.from_pretrained(job.folder);
  return job.inputs.map((text) => Array.from(tokenizer(text).input_ids.data, Number));
}

async function ask(job) {
  if (job.task === "ids") return ids(job);
  if (job.task === "wasm") return inWasm(job);
  const asked = await pipeline(job.task, job.folder, { dtype: job.dtype, device: "cpu" });
  const answer = await asked(...job.inputs);
  return answer?.data ? { dims: answer.dims, data: Array.from(answer.data) } : answer;
}

const answers = [];
for (const job of jobs) answers.push(await ask(job));
console.log(JSON.stringify(answers));
