// The test page: one request, its answer, and the same request for curl. Everything is shown as text, never as HTML.
const get = (id) => document.getElementById(id);
const SECOND = { "/answer": ["Question", "Context"] };
const PROMPT = "/generate";
let models = [];

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
  get("error").textContent = error.message;
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

function showRoutes() {
  const model = models.find((each) => each.name === get("model").value);
  fill(get("route"), model ? model.routes : []);
  showFields();
}

function showFields() {
  const route = get("route").value;
  const model = models.find((each) => each.name === get("model").value);
  const takesTwo = route in SECOND || (route === "/predict" && model?.task === "pair");
  get("second-field").hidden = !takesTwo && !(route === "/predict" && model?.routes.includes("/answer"));
  get("text-label").textContent = route in SECOND ? SECOND[route][0] : route === PROMPT ? "Prompt" : "Text";
  get("second-label").textContent = route in SECOND ? SECOND[route][1] : "Second text";
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

// Offsets are code points, strings of JavaScript are UTF-16.
function showSpans(answer, text) {
  const points = Array.from(text);
  const parts = [];
  let end = 0;
  for (const entity of answer.entities ?? []) {
    if (entity.start < end) continue;
    const mark = document.createElement("mark");
    const label = document.createElement("small");
    label.textContent = entity.label;
    mark.append(points.slice(entity.start, entity.end).join(""), label);
    parts.push(points.slice(end, entity.start).join(""), mark);
    end = entity.end;
  }
  const words = answer.label ?? answer.answer ?? answer.translation ?? answer.text;
  if (answer.entities) parts.push(points.slice(end).join(""));
  else if (words !== undefined) parts.push(String(words));
  get("marked").replaceChildren(...parts);
}

function curl(path, values) {
  const quote = (text) => `'${text.replaceAll("'", "'\\''")}'`;
  const key = get("key").value ? " -H \"Authorization: Bearer $KEY\"" : "";
  return `curl ${location.origin}${path} -H 'Content-Type: application/json'${key} -d ${quote(JSON.stringify(values))}`;
}

async function send(event) {
  event.preventDefault();
  if (!models.length) return loadModels();
  const path = get("route").value;
  const values = body();
  const started = performance.now();
  try {
    const result = await request(path, values);
    get("error").hidden = true;
    get("time").textContent = `${(performance.now() - started).toFixed(1)} ms`;
    showSpans(result.answers[0], get("text").value);
    get("json").textContent = JSON.stringify(result, null, 2);
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
get("key").addEventListener("change", loadModels);
get("copy").addEventListener("click", () => navigator.clipboard.writeText(get("curl").textContent));
loadModels();
