// The test page: one request, its answer, and the same request for curl. Everything is shown as text, never as HTML.
import { json, shown } from "./answers.js";

const get = (id) => document.getElementById(id);
const PROMPT = "/generate";
let models = [];
let loading = null; // the latest request for the models
let last = null; // the last answer

function headers() {
  const values = { "Content-Type": "application/json" };
  if (get("key").value) values.Authorization = `Bearer ${get("key").value}`;
  return values;
}

async function request(path, body) {
  const options = body === undefined ? { headers: headers() } : { method: "POST", headers: headers(), body: JSON.stringify(body) };
  const response = await fetch(path, options);
  const values = await response.json();
  if (!response.ok) throw Object.assign(new Error(values.error), { status: response.status });
  return values;
}

function showError(error) {
  const missing = error.status === 401 && !get("key").value;
  get("error").textContent = missing ? "This server needs an API key. Type it above." : error.message;
  get("error").hidden = false;
  get("key-field").hidden = error.status !== 401 && !get("key").value;
}

function fill(select, values) {
  select.replaceChildren(...values.map((value) => new Option(value, value)));
}

async function loadModels() {
  try {
    models = (await request("/info")).models;
    get("error").hidden = true;
    fill(get("model"), models.map((model) => model.name));
    showRoutes();
  } catch (error) {
    showError(error);
  }
}

function reloadModels() {
  loading = loadModels();
  return loading;
}

function showRoutes() {
  const model = models.find((each) => each.name === get("model").value);
  fill(get("route"), model ? model.routes : []);
  get("about").textContent = model ? `${model.task ?? model.kind} · ${model.family} · ${model.engine} on ${model.device}` : "";
  showFields();
}

function showFields() {
  const route = get("route").value;
  const model = models.find((each) => each.name === get("model").value);
  const asks = route === "/answer" || (["/predict", "/explain"].includes(route) && model?.routes.includes("/answer"));
  const [first, second] = asks ? ["Question", "Context"] : [route === PROMPT ? "Prompt" : "Text", "Second text"];
  get("second-field").hidden = !asks && !(["/predict", "/explain"].includes(route) && model?.task === "pair");
  get("text-label").textContent = first;
  get("second-label").textContent = second;
}

function body() {
  const route = get("route").value;
  const text = get("text").value;
  const second = get("second-field").hidden ? "" : get("second").value;
  const model = get("model").value;
  if (route === "/answer") return { model, question: text, context: second };
  if (route === PROMPT) return { model, prompt: text };
  return { model, text: second ? [text, second] : text };
}

function curl(path, values) {
  const quote = (text) => `'${text.replaceAll("'", "'\\''")}'`;
  const key = get("key").value ? " -H \"Authorization: Bearer $KEY\"" : "";
  return `curl ${location.origin}${path} -H 'Content-Type: application/json'${key} -d ${quote(JSON.stringify(values))}`;
}

// A link sends no API key: with one, the page of the routes is read here and shown instead of the form.
async function showDocs(event) {
  if (get("key-field").hidden) return;
  event.preventDefault();
  const response = await fetch("/docs", { headers: headers() });
  const text = await response.text();
  if (!response.ok) return showError({ message: JSON.parse(text).error, status: response.status });
  document.querySelector("main").replaceWith(new DOMParser().parseFromString(text, "text/html").querySelector("main"));
}

async function copy(id, text) {
  const button = get(id);
  const label = button.textContent;
  try {
    await navigator.clipboard.writeText(text);
    button.textContent = "Copied";
  } catch {
    button.textContent = "Not allowed by the browser"; // such as a page without https
  }
  setTimeout(() => { button.textContent = label; }, 1500);
}

async function send(event) {
  event.preventDefault();
  await loading; // a click before the models are known waits for them
  if (!models.length) await reloadModels();
  if (!models.length) return;
  const path = get("route").value;
  const values = body();
  const started = performance.now();
  try {
    const result = await request(path, values);
    get("error").hidden = true;
    get("time").textContent = `${(performance.now() - started).toFixed(1)} ms`;
    const second = get("second-field").hidden ? "" : get("second").value;
    get("marked").replaceChildren(...shown(result.answers[0], get("text").value, second));
    get("json").textContent = json(result);
    last = result;
    get("curl").textContent = curl(path, values);
    get("result").hidden = false;
  } catch (error) {
    get("result").hidden = true;
    showError(error);
  }
}

get("form").addEventListener("submit", send);
get("model").addEventListener("change", showRoutes);
get("route").addEventListener("change", showFields);
get("key").addEventListener("change", reloadModels);
get("docs").addEventListener("click", showDocs);
get("text").form.addEventListener("keydown", (event) => {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) get("form").requestSubmit();
});
get("copy").addEventListener("click", () => copy("copy", get("curl").textContent));
get("copy-json").addEventListener("click", () => copy("copy-json", JSON.stringify(last, null, 2)));
reloadModels();
