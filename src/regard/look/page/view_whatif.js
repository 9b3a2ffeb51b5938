// What if: another text, heads or layers switched off, words that change the answer.

import { input, isFile, request, unpack } from "./api.js";
import { card, h, notice, number, percent, table } from "./dom.js";
import { answerBars } from "./answer.js";
import { signed } from "./colors.js";
import { hasCanvas, heatMap } from "./heatmap.js";
import { jobBox } from "./jobs.js";
import { letters, slice } from "./spans.js";
import { set, state } from "./store.js";
import { tokenList } from "./tokens.js";

export const id = "whatif";
export const title = "What if";
export const about = "Change the text or the model and see what changes";

const parseOff = () => (state.off ? state.off.split("_").map((each) => each.split("-").map(Number)) : []);
const parseSkipped = () => (state.skipped ? state.skipped.split("_").map(Number) : []);

export function changedInput(more = {}) {
  const off = parseOff();
  const skipped = parseSkipped();
  return { ...input(more), text: state.changed || state.text, off: off.length ? off : null, skipped: skipped.length ? skipped : null,
    off_part: (off.length || skipped.length) && state.part ? state.part : null };
}

const isChanged = () => Boolean(state.changed && state.changed !== state.text) || Boolean(state.off) || Boolean(state.skipped);

export async function render(root, { page, model, reading, part }) {
  if (isFile) root.append(notice("This file holds the text as it is. To change it, or to switch heads off, run regard look MODEL."));
  else root.append(await editCard(reading));
  if (!isFile) root.append(await resultCard(reading, part));
  if (isFile) {
    root.append(counterfactualCard(model));
    return;
  }
  if (part && part.name !== "alignment") root.append(await headsCard(page, model, part));
  else root.append(card("Heads and layers", null, notice("This network has no heads or blocks that could be switched off.")));
  root.append(counterfactualCard(model));
}

function edit(text) {
  set({ changed: text === state.text ? "" : text });
}

async function editCard(reading) {
  const text = state.changed || state.text;
  const current = text === state.text ? reading : await request("read", { ...input(), text, target: null });
  const tokens = current.tokens;
  const chosen = Math.min(state.edit ?? -1, tokens.length - 1);
  const all = letters(text);
  const token = tokens[chosen];
  const usable = token && token.sequence === 0 && token.end > token.start;
  const next = tokens.slice(chosen + 1).find((each) => each.sequence === 0 && each.end > each.start);
  const replaced = (word) => slice(all, 0, token.start) + word + slice(all, token.end);
  const without = () => (slice(all, 0, token.start).replace(/\s+$/, "") + slice(all, token.end));
  const swapped = () => slice(all, 0, token.start) + slice(all, next.start, next.end).trim() + slice(all, token.end, next.start) + (/^\s/.test(slice(all, token.end, next.end)) || slice(all, token.end, next.start) ? "" : " ") + slice(all, token.start, token.end).trim() + slice(all, next.end);
  const word = h("input", { type: "text", id: "new-word", dir: "auto", "aria-label": "New word", "data-focus": "new word", maxlength: 200, size: 14 });
  const tools = h("form", { class: "tools", onsubmit: (event) => { event.preventDefault(); if (usable && word.value) edit(replaced(word.value)); } },
    h("button", { type: "button", "data-focus": "mask", disabled: !usable, onclick: () => edit(replaced("[MASK]")) }, "Mask"),
    h("button", { type: "button", "data-focus": "delete", disabled: !usable, onclick: () => edit(without()) }, "Delete"),
    h("button", { type: "button", "data-focus": "swap", disabled: !usable || !next, onclick: () => edit(swapped()) }, "Swap with the next"),
    word, h("button", { type: "submit", disabled: !usable }, "Replace"),
    h("button", { type: "button", disabled: !isChanged(), onclick: () => set({ changed: "", off: "", skipped: "", edit: -1 }) }, "Undo all"));
  const area = h("textarea", { rows: 2, dir: "auto", "aria-label": "Changed text", "data-focus": "changed text", value: text, onchange: () => edit(area.value.trim() || state.text) });
  return card("Change the text", "Choose a token, then mask, delete, swap or replace it; or edit the text itself.",
    tokenList("Tokens of the changed text", tokens.slice(0, 400), { chosen, choose: (place) => set({ edit: place === chosen ? -1 : place }) }), tools, area);
}

async function resultCard(reading, part) {
  const [before, after] = await Promise.all([request("answer", input()), request("answer", changedInput())]);
  const side = (name, answer) => h("div", { class: "side-of" }, h("p", { class: "faint small" }, name), h("p", {}, h("b", { dir: "auto", class: "big" }, answer.text)), answer.bars.length ? answerBars(answer, 8) : null);
  const top = before.bars[0];
  const now = top ? after.bars.find(([name]) => name === top[0]) : null;
  const moved = isChanged() && top && now ? `${top[0].trim()}: ${percent(top[1])} → ${percent(now[1])} (${now[1] >= top[1] ? "+" : "−"}${(100 * Math.abs(now[1] - top[1])).toFixed(1)} points)` : null;
  const box = card("Before and after", moved, h("div", { class: "even" }, side("as it is", before), side(isChanged() ? "changed" : "unchanged so far", after)));
  if (!part || !hasCanvas()) return box;
  const changed = await request("read", changedInput());
  const other = changed.parts.find((each) => each.name === part.name);
  const maps = await Promise.all([[part, input()], [other, changedInput()]].map(async ([each, values]) => {
    const map = heatMap({ queries: each.queries, keys: each.keys, mask: each.masks[state.layer - 1], name: "map", chosen: [-1, -1], choose: () => {},
      weights: unpack((await request("map", { ...values, part: each.name, layer: state.layer, heads: [state.heads[0]] })).weights) });
    return map;
  }));
  const which = part.heads > 1 ? `Attention of layer ${state.layer}, head ${state.heads[0]}, before and after` : "Alignment, before and after";
  box.append(h("details", { open: part.queries.length <= 40 }, h("summary", {}, which), h("div", { class: "even" }, maps)));
  return box;
}

async function headsCard(page, model, part) {
  const off = parseOff();
  const skipped = parseSkipped();
  const isOff = (layer, head) => off.some(([one, two]) => one === layer && two === head);
  const write = (heads) => set({ off: heads.map((pair) => pair.join("-")).join("_") });
  const toggle = (layer, head) => write(isOff(layer, head) ? off.filter(([one, two]) => one !== layer || two !== head) : [...off, [layer, head]]);
  const toggleLayer = (layer) => set({ skipped: (skipped.includes(layer) ? skipped.filter((each) => each !== layer) : [...skipped, layer]).join("_") });
  const rows = Array.from({ length: part.layers }, (_, at) => at + 1).map((layer) => h("tr", {}, h("th", { scope: "row" },
    h("button", { type: "button", class: "plain", "aria-pressed": String(skipped.includes(layer)), "data-focus": `layer off ${layer}`, onclick: () => toggleLayer(layer) }, `layer ${layer}`)),
    Array.from({ length: part.heads }, (__, head) => h("td", {}, h("button", { type: "button", class: "switch", role: "switch", "aria-checked": String(!isOff(layer, head) && !skipped.includes(layer)), "data-focus": `switch ${layer} ${head}`,
      "aria-label": `layer ${layer}, head ${head}`, onclick: () => toggle(layer, head) }, String(head))))));
  return card("Switch heads and layers off", "A head that is off contributes nothing; a layer that is off passes on what it reads. The answer above changes at once.",
    h("div", { class: "scroll" }, h("table", { class: "switches" }, h("tbody", {}, rows))),
    h("h3", {}, "What each head is worth"), h("p", { class: "faint small" }, "The score that is lost on a data set when a head is switched off (Michel et al. 2019). Choose a cell to switch it off here."),
    await jobBox({ name: "heads", label: "Measure every head", page, show: (result) => worth(result, toggle) }));
}

function worth(result, toggle) {
  const largest = Math.max(1e-9, ...result.heads.flat().map(Math.abs), ...result.layers.map(Math.abs));
  const cell = (value, layer, head) => h("td", { class: "cell", style: { background: signed(value / largest) } }, h("button", { type: "button", "data-value": value, "aria-label": `layer ${layer}, head ${head}: ${number(value)}`, onclick: () => toggle(layer, head) }, number(value, 3)));
  return [h("p", {}, `${result.metric.replaceAll("_", " ")} of the whole model on ${result.rows} rows: `, h("b", {}, number(result.score, 4))),
    h("div", { class: "scroll" }, h("table", { class: "heat" }, h("thead", {}, h("tr", {}, h("th", {}), result.heads[0].map((_, head) => h("th", { scope: "col" }, `head ${head}`)), h("th", { scope: "col" }, "layer"))),
      h("tbody", {}, result.heads.map((row, layer) => h("tr", {}, h("th", { scope: "row" }, `layer ${layer + 1}`), row.map((value, head) => cell(value, layer + 1, head)), h("td", { class: "cell", style: { background: signed(result.layers[layer] / largest) } }, number(result.layers[layer], 3)))))))];
}

function counterfactualCard(model) {
  const box = h("div", {});
  const run = async () => {
    box.replaceChildren(h("p", { class: "faint" }, "Trying words …"));
    try {
      const answer = await request("counterfactuals", input());
      box.replaceChildren(...found(answer));
    } catch (error) {
      box.replaceChildren(notice(error.message));
    }
    box.dataset.done = "true";
  };
  if (isFile) run();
  return card("Words that change the answer", "The most important words are replaced one at a time by words that a masked language model proposes, or by words with similar embeddings.",
    model.task === "classify" || model.labels.length ? (isFile ? null : h("button", { type: "button", class: "go", id: "counterfactuals", onclick: run }, "Search")) : notice("This is for models that predict one label for a text."), model.task === "classify" || model.labels.length ? box : null);
}

function found(answer) {
  const intro = h("p", {}, `${answer.tried} replacements from ${answer.source === "embedding neighbors" ? "similar embeddings" : "a masked language model"}: `, h("b", {}, `${answer.changes.length} change the answer`), ` from ${answer.label} (${percent(answer.probability)}).`);
  if (!answer.changes.length) return [intro];
  return [intro, table(["word", "replaced by", "new answer", "probability", "\u00a0"], answer.changes.slice(0, 20).map((change) => h("tr", { "data-text": change.text }, h("td", { dir: "auto" }, change.word), h("td", { dir: "auto" }, h("b", {}, change.replacement)), h("td", { dir: "auto" }, change.label), h("td", { class: "n" }, percent(change.probability)),
    h("td", {}, h("button", { type: "button", class: "plain", onclick: () => edit(change.text) }, "Show")))), { class: "sorted" }), answer.changes.length > 20 ? h("p", { class: "faint small" }, `and ${answer.changes.length - 20} more`) : null].filter(Boolean);
}
