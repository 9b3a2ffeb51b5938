// The frame of the page: the text, the answer, the tabs, and the view that is shown.

import { input, isFile, request } from "./api.js";
import { h, notice, say } from "./dom.js";
import { restore, set, state, subscribe } from "./store.js";
import { answerBox } from "./answer.js";
import * as heads from "./view_heads.js";
import * as steps from "./view_steps.js";
import * as why from "./view_why.js";
import * as lens from "./view_lens.js";
import * as whatif from "./view_whatif.js";
import * as meaning from "./view_meaning.js";
import * as reasons from "./view_reasons.js";
import * as compare from "./view_compare.js";

const VIEWS = [heads, steps, why, lens, whatif, meaning, reasons, compare];
const ids = (view) => `tab-${view.id}`;
let page = null;
let ticket = 0;

const clamp = (value, low, high) => Math.max(low, Math.min(high, value));
const millions = (count) => (count >= 1e6 ? `${(count / 1e6).toFixed(1)} M` : `${Math.round(count / 1e3)} k`);

function about(model) {
  const size = model.heads > 1 || model.parts.length ? `${model.layers + model.decoder_layers} layers × ${model.heads} heads` : `${model.layers} layers`;
  const facts = [model.family, model.network, size, `${millions(model.parameters)} parameters`, model.task ? `task: ${model.task}` : "no task"];
  return h("span", { class: "model" }, h("b", { dir: "auto" }, model.name), h("span", { class: "faint" }, facts.join(" · ")),
    model.untrained ? h("span", { class: "tag c1" }, "untrained: random weights") : null);
}

function field(label, name, rows) {
  const area = h("textarea", { rows, "data-focus": label, "aria-label": label, dir: "auto", spellcheck: "false", value: state[name],
    readonly: isFile, onkeydown: (event) => {
      if (event.key === "Enter" && !event.shiftKey) {
        event.preventDefault();
        submit();
      }
    } });
  area.name = name;
  return h("label", { class: "text-field" }, h("span", {}, label), area);
}

function submit() {
  const values = { token: -1, key: -1, window: 0, changed: "", edit: -1, aim: "" };
  for (const area of document.querySelectorAll("#head textarea")) values[area.name] = area.value.trim();
  set(values);
}

function header() {
  const model = page.models[0];
  const [first, second = state.pair ? "second text" : null] = model.inputs;
  const isTarget = second === "target";
  const fields = [field(first, "text", 2)];
  if (second) fields.push(field(isTarget ? "target (empty: the model's translation)" : second, isTarget ? "target" : "pair", 2));
  const form = h("form", { class: "texts", onsubmit: (event) => { event.preventDefault(); submit(); } }, fields,
    isFile ? null : h("button", { class: "go", type: "submit" }, "Look"));
  document.getElementById("head").replaceChildren(
    h("div", { class: "brand" }, h("b", { class: "wordmark" }, "regard look"), page.models.map(about)),
    form, h("div", { id: "answer" }), h("div", { id: "notices" }));
}

function tabs() {
  const list = document.getElementById("tabs");
  list.replaceChildren(...VIEWS.map((view) => h("button", { type: "button", role: "tab", id: ids(view), title: view.about,
    "aria-selected": String(state.view === view.id), "aria-controls": "main", tabindex: state.view === view.id ? "0" : "-1",
    "data-focus": ids(view), onclick: () => set({ view: view.id }) }, view.title)));
  const chosen = list.querySelector("[aria-selected=true]"); // in view where tabs are wider than the screen
  if (chosen) list.scrollLeft = Math.max(0, chosen.offsetLeft - list.offsetLeft + chosen.offsetWidth - list.clientWidth);
  list.onkeydown = (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    const at = VIEWS.findIndex((view) => view.id === state.view);
    const next = VIEWS[(at + step + VIEWS.length) % VIEWS.length];
    event.preventDefault();
    set({ view: next.id });
    document.getElementById(ids(next)).focus();
  };
}

// Layers, heads and tokens that do not exist (in a link, or after another text) become the nearest that do.
function normalize(reading) {
  if (!reading.parts.length) return null;
  const part = reading.parts.find((each) => each.name === state.part) || reading.parts[0];
  state.part = part.name === reading.parts[0].name ? "" : part.name;
  state.layer = clamp(state.layer || Math.ceil(part.layers / 2), 1, part.layers);
  state.heads = state.heads.filter((head) => head >= 0 && head < part.heads);
  if (!state.heads.length) state.heads = [0];
  state.token = Math.min(state.token, part.queries.length - 1);
  state.key = Math.min(state.key, part.keys.length - 1);
  return part;
}

async function showAnswer(mine) {
  const box = document.getElementById("answer");
  try {
    const answer = await request("answer", input());
    if (mine === ticket) box.replaceChildren(answerBox(answer, { text: state.text, pair: state.pair }));
  } catch (error) {
    if (mine === ticket) box.replaceChildren(notice(error.message, "notice"));
  }
}

function windows(reading) {
  const parts = reading.notices.map((text) => notice(text));
  if (reading.windows > 1) {
    parts.push(h("div", { class: "tools" },
      h("button", { type: "button", disabled: state.window === 0, onclick: () => set({ window: state.window - 1, token: -1, key: -1 }) }, "Previous window"),
      h("span", { class: "small" }, `window ${state.window + 1} of ${reading.windows}`),
      h("button", { type: "button", disabled: state.window + 1 >= reading.windows, onclick: () => set({ window: state.window + 1, token: -1, key: -1 }) }, "Next window")));
  }
  document.getElementById("notices").replaceChildren(...parts);
}

async function render() {
  const mine = ++ticket;
  const view = VIEWS.find((each) => each.id === state.view) || VIEWS[0];
  const main = document.getElementById("main");
  const focused = document.activeElement?.dataset?.focus;
  tabs();
  main.setAttribute("aria-busy", "true");
  main.setAttribute("aria-labelledby", ids(view));
  const box = h("div", { class: `view view-${view.id}` });
  try {
    if (!state.text.trim() && !view.withoutText) {
      box.append(notice("Write a text into the field above and press Look."));
    } else {
      let reading = null;
      if (!view.withoutText) {
        reading = await request("read", input());
        if (mine !== ticket) return;
        windows(reading);
      }
      const part = reading ? normalize(reading) : null;
      await view.render(box, { page, model: page.models[0], reading, part, isCurrent: () => mine === ticket });
    }
  } catch (error) {
    if (mine !== ticket) return;
    box.replaceChildren(notice(error.message, "error"));
    say(error.message);
  }
  if (mine !== ticket) return;
  main.replaceChildren(box);
  main.removeAttribute("aria-busy");
  main.dataset.view = view.id;
  main.dataset.ready = String(mine);
  if (state.text.trim() && !view.withoutText) showAnswer(mine);
  if (focused) {
    const again = [...document.querySelectorAll("[data-focus]")].find((each) => each.dataset.focus === focused);
    if (again && document.activeElement !== again) again.focus({ preventScroll: true });
  }
}

async function start() {
  try {
    page = await request("page");
  } catch (error) {
    document.getElementById("main").replaceChildren(notice(error.message, "error"));
    return;
  }
  document.title = `${page.models[0].name} · regard look`;
  restore({ text: page.text || "", pair: page.pair || "", target: page.target || "" });
  header();
  subscribe((changed) => {
    if (changed.has("text") || changed.has("pair") || changed.has("target")) header();
    render();
  });
  await render();
}

start();
