// Heads: lines between tokens, a heat map with zoom, all heads as small maps, and the products behind one weight.

import { input, isFile, request, unpack } from "./api.js";
import { bar, card, choices, h, number, notice, s, select } from "./dom.js";
import { headColor, isDark, signed } from "./colors.js";
import { hasCanvas, heatMap, paint } from "./heatmap.js";
import { set, state } from "./store.js";
import { shown, tokenList } from "./tokens.js";

export const id = "heads";
export const title = "Heads";
export const about = "What each head attends to";

const ROW = 26;
const MOST_LINES = 1500;
const LISTED = 8;
const MAX_LINES_TOKENS = 768; // beyond, the heat map is the better picture
const PARTS = { encoder: "encoder: text to itself", decoder: "decoder: text to itself", cross: "cross-attention: translation to source",
  alignment: "alignment: translation to source" };

// The weights of one head.
async function loadMap(part, head) {
  const answer = await request("map", input({ part: part.name, layer: state.layer, heads: [head] }));
  return unpack(answer.weights);
}

// The weights of several heads, each asked for on its own, so that no head is sent twice.
async function loadHeads(part) {
  const maps = await Promise.all(state.heads.map((head) => loadMap(part, head)));
  return { heads: [...state.heads], at: (index, row, column) => maps[index].numbers[row * part.keys.length + column] * maps[index].factor };
}

// The products of one query and one key; a page in a file computes them from the vectors it holds.
async function pairOf(part, head) {
  if (!isFile) return request("pair", input({ part: part.name, layer: state.layer, head, query: state.token, key: state.key }));
  const values = await request("vectors", input({ part: part.name, layer: state.layer, head }));
  const [query, key] = [values.queries[state.token], values.keys[state.key]];
  const products = query.map((value, at) => value * key[at]);
  const dot = products.reduce((sum, value) => sum + value, 0);
  const score = values.scores ? values.scores[state.token][state.key] : dot * values.scale;
  const weight = await loadMap(part, head);
  const mask = part.masks[state.layer - 1];
  const distance = state.key - (state.token + part.keys.length - part.queries.length);
  return { query, key, products, dot, scale: values.scale, bias: values.additive ? 0 : score - dot * values.scale, score,
    additive: values.additive, masked: (mask.right !== null && distance > mask.right) || (mask.left !== null && -distance > mask.left), weight: weight.numbers[state.token * part.keys.length + state.key] * weight.factor };
}

export function controls(reading, part, { several = true } = {}) {
  const layers = Array.from({ length: part.layers }, (_, layer) => [layer + 1, String(layer + 1)]);
  const chips = part.heads > 1 ? h("div", { class: "field" }, h("span", {}, several ? "Heads (Shift adds)" : "Head"),
    h("div", { class: "chips", role: "group", "aria-label": "Heads" },
      Array.from({ length: part.heads }, (_, head) => h("button", { type: "button", class: "chip", "data-focus": `head ${head}`,
        "aria-pressed": String(several ? state.heads.includes(head) : state.heads[0] === head), "aria-label": `head ${head}`,
        style: { "--chip": headColor(head) }, onclick: (event) => pickHead(head, several && event.shiftKey) }, String(head))),
      several ? h("button", { type: "button", class: "chip all", "data-focus": "all heads",
        onclick: () => set({ heads: Array.from({ length: part.heads }, (_, head) => head) }) }, "all") : null)) : null;
  return h("div", { class: "controls" },
    reading.parts.length > 1 ? select("Attention", reading.parts.map((each) => [each.name, PARTS[each.name]]), part.name,
      (name) => set({ part: name, token: -1, key: -1, layer: 0 })) : null,
    part.layers > 1 ? select("Layer", layers, state.layer, (layer) => set({ layer: Number(layer) })) : null, chips);
}

function pickHead(head, adds) {
  if (!adds) return set({ heads: [head] });
  const without = state.heads.filter((each) => each !== head);
  return set({ heads: without.length < state.heads.length && without.length ? without : [...without, head].sort((one, two) => one - two) });
}

export async function render(root, { reading, part, model }) {
  if (!part) {
    root.append(noAttention(model));
    return;
  }
  const modes = [["lines", "Lines"], ["map", "Heat map"], ["grid", "All heads"]];
  root.append(h("div", { class: "bar-of-controls" }, choices("Picture", modes, state.mode, (mode) => set({ mode })), controls(reading, part)));
  if (state.mode === "grid") {
    root.append(await grid(part));
    return;
  }
  const side = h("div", { class: "side" });
  const picture = state.mode === "map" ? await mapView(part) : await lines(part);
  root.append(h("div", { class: "two" }, picture, side));
  side.append(...await details(part));
}

export function noAttention(model) {
  const can = model.kind === "encoder-decoder" ? "Why this answer and What if" : "Why this answer, What if and Right for the wrong reason";
  return card("No attention to show", null, h("p", {}, `This model is a ${model.network}: no token attends to another, so there are no heads to draw.`),
    h("p", {}, `What it can show instead: ${can}.`));
}

function legend(part) {
  const row = part.name === "cross" || part.name === "alignment" ? "A row is a word of the translation as it is written; it attends to the source." :
    "Left: the token that looks (query). Right: the tokens it looks at (keys).";
  return row;
}

async function lines(part) {
  const { queries, keys } = part;
  if (Math.max(queries.length, keys.length) > MAX_LINES_TOKENS) {
    return card(null, null, notice(`Lines between ${queries.length} tokens would hide each other. The heat map shows them all.`),
      h("button", { type: "button", class: "go", onclick: () => set({ mode: "map" }) }, "Open the heat map"));
  }
  const answer = await loadHeads(part);
  const height = ROW * Math.max(queries.length, keys.length);
  const svg = s("svg", { class: "lines", viewBox: `0 0 100 ${height}`, preserveAspectRatio: "none", height, role: "img",
    "aria-label": "Lines from each token to the tokens it attends to; the list beside has the numbers." });
  const middle = (place) => place * ROW + ROW / 2;
  const draw = (over) => {
    const from = over ?? (state.token >= 0 ? state.token : null);
    const all = [];
    for (let row = from ?? 0; row < (from === null ? queries.length : from + 1); row += 1) {
      for (let column = 0; column < keys.length; column += 1) {
        for (let index = 0; index < answer.heads.length; index += 1) {
          all.push([answer.at(index, row, column), row, column, answer.heads[index]]);
        }
      }
    }
    const floor = Math.min(from === null ? 0.04 : 0.004, 0.5 * all.reduce((most, [weight]) => Math.max(most, weight), 0)); // equal weights are drawn too
    const strongest = all.filter(([weight]) => weight > floor).sort((one, two) => two[0] - one[0]);
    svg.replaceChildren(...strongest.slice(0, MOST_LINES).reverse().map(([weight, row, column, head]) => s("path", {
      d: `M0 ${middle(row)} C40 ${middle(row)} 60 ${middle(column)} 100 ${middle(column)}`, stroke: headColor(head),
      "stroke-opacity": Math.min(1, from === null ? 0.06 + 0.94 * weight : 0.12 + 0.88 * Math.sqrt(weight)).toFixed(3), "stroke-width": (0.8 + 2.2 * weight).toFixed(2),
      "data-query": row, "data-key": column, "data-head": head, "data-weight": weight.toFixed(6) })));
  };
  const left = tokenList("Queries", queries, { chosen: state.token, vertical: true, over: draw,
    choose: (place) => set({ token: place === state.token ? -1 : place }) });
  const best = state.token >= 0 ? (place) => {
    let largest = 0;
    for (let index = 0; index < answer.heads.length; index += 1) largest = Math.max(largest, answer.at(index, state.token, place));
    return { "--tint": `${Math.round(70 * largest)}%` };
  } : null;
  const right = tokenList("Keys", keys, { chosen: state.key, vertical: true, style: best, choose: (place) => set({ key: place }) });
  draw(null);
  return card(null, legend(part), h("div", { class: "line-view", style: { "--row": `${ROW}px` } }, left, svg, right));
}

async function mapView(part) {
  if (!hasCanvas()) return card(null, null, notice("This browser draws no canvas. Lines and the list beside show the same numbers."));
  const head = state.heads[0];
  const map = heatMap({ queries: part.queries, keys: part.keys, mask: part.masks[state.layer - 1],
    name: part.heads > 1 ? `Layer ${state.layer}, head ${head}` : "Alignment", chosen: [state.token, state.key],
    choose: (token, key) => set({ token, key }), weights: await loadMap(part, head) });
  const others = state.heads.length > 1 ? ` Of the ${state.heads.length} chosen heads, the first is shown.` : "";
  const mask = part.masks[state.layer - 1];
  const hidden = mask.left !== null || mask.right !== null ? " Gray: hidden by the mask." : "";
  return card(part.heads > 1 ? `Layer ${state.layer}, head ${head}` : "Alignment", `Each row adds up to 1; drag to zoom.${hidden}${others}`, map);
}

async function grid(part) {
  const answer = await request("grid", input({ part: part.name }));
  const { numbers, shape } = unpack(answer.maps);
  const [layers, heads, rows, columns] = shape;
  const cells = [h("span", { class: "corner" })];
  for (let head = 0; head < heads; head += 1) cells.push(h("span", { class: "faint small" }, String(head)));
  for (let layer = 0; layer < layers; layer += 1) {
    cells.push(h("span", { class: "faint small row" }, String(layer + 1)));
    for (let head = 0; head < heads; head += 1) {
      const canvas = h("canvas", { "aria-hidden": "true" });
      const mask = part.masks[layer];
      const scale = [part.queries.length / rows, part.keys.length / columns];
      paint(canvas, { numbers, offset: (layer * heads + head) * rows * columns, rows, columns, levels: 1,
        hidden: mask.right === null && mask.left === null ? null : (row, column) => {
          const distance = Math.floor(column * scale[1]) - Math.ceil(row * scale[0]);
          return (mask.right !== null && distance > mask.right) || (mask.left !== null && -distance > mask.left);
        } });
      const largest = answer.largest[layer][head];
      const isChosen = state.layer === layer + 1 && state.heads.includes(head);
      cells.push(h("button", { type: "button", class: "thumb", "aria-pressed": String(isChosen), "data-focus": `thumb ${layer + 1} ${head}`,
        "data-largest": largest, title: `layer ${layer + 1}, head ${head}; largest weight ${number(largest)}`,
        "aria-label": `layer ${layer + 1}, head ${head}, largest weight ${number(largest)}`,
        onclick: () => set({ layer: layer + 1, heads: [head], mode: "map" }) }, canvas));
    }
  }
  const box = h("div", { class: "grid-maps", style: { "--heads": heads } }, cells);
  box.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: heads, ArrowUp: -heads }[event.key];
    const thumbs = [...box.querySelectorAll(".thumb")];
    const at = thumbs.indexOf(document.activeElement);
    if (!step || at < 0 || !thumbs[at + step]) return;
    event.preventDefault();
    thumbs[at + step].focus();
  });
  return card("All heads", "Layers from top to bottom, heads from left to right. Each map has its own scale; choose one to enlarge it.",
    h("div", { class: "scroll" }, box));
}

async function details(part) {
  if (state.token < 0) return [card("One token", null, h("p", { class: "faint" }, "Choose a token to see where it looks, with numbers; then a second one to see how their weight comes about."))];
  const token = part.queries[state.token];
  const answer = await loadHeads(part);
  const rows = [];
  for (let column = 0; column < part.keys.length; column += 1) {
    let total = 0;
    for (let index = 0; index < answer.heads.length; index += 1) total += answer.at(index, state.token, column);
    rows.push([total / answer.heads.length, column]);
  }
  rows.sort((one, two) => two[0] - one[0]);
  const which = answer.heads.length === 1 ? (part.heads > 1 ? `layer ${state.layer}, head ${answer.heads[0]}` : "alignment") : `layer ${state.layer}, mean of ${answer.heads.length} heads`;
  const list = h("ol", { class: "strongest" }, rows.slice(0, LISTED).map(([weight, column]) => h("li", {},
    h("button", { type: "button", class: "token", dir: "auto", "data-key": column, "data-weight": weight.toFixed(6), "data-focus": `strongest ${column}`,
      "aria-pressed": String(column === state.key), onclick: () => set({ key: column }) }, shown(part.keys[column])),
    bar(weight, 1), h("span", { class: "n" }, weight.toFixed(3)))));
  const cards = [card(h("span", {}, h("bdi", {}, shown(token)), " attends to"), which, list)];
  if (state.key >= 0 && part.name !== "alignment") cards.push(await products(part).catch((error) => card("Query and key", null, notice(error.message))));
  return cards;
}

async function products(part) {
  const head = state.heads[0];
  const answer = await pairOf(part, head);
  const largest = Math.max(...answer.products.map(Math.abs), 1e-9);
  const width = answer.products.length;
  const chart = s("svg", { class: "products", viewBox: `0 0 ${width * 10} 110`, preserveAspectRatio: "none", role: "img",
    "aria-label": `Products of query and key in ${width} dimensions; their sum is ${number(answer.dot)}` },
    s("line", { x1: 0, x2: width * 10, y1: 55, y2: 55, class: "axis" }),
    answer.products.map((value, dimension) => s("rect", { x: dimension * 10 + 1, width: 8, y: value >= 0 ? 55 - (50 * value) / largest : 55,
      height: Math.max(0.5, (50 * Math.abs(value)) / largest), fill: value >= 0 ? (isDark() ? "#75a5e3" : "#3b6ea8") : (isDark() ? "#ee8373" : "#c44e3b"),
      "data-dimension": dimension, "data-product": value },
      s("title", {}, `dimension ${dimension}: ${number(answer.query[dimension])} × ${number(answer.key[dimension])} = ${number(value)}`))));
  const strip = (name, values) => {
    const most = Math.max(...values.map(Math.abs), 1e-9);
    return h("div", { class: "strip-row" }, h("span", { class: "faint small" }, name), h("span", { class: "strip", role: "img", "aria-label": `${name}: ${width} numbers up to ${number(most)}` },
      values.map((value) => h("i", { style: { background: signed(value / most) } }))));
  };
  const terms = [["sum of the products", answer.dot], [`× ${number(answer.scale)} (scale)`, answer.dot * answer.scale]];
  if (Math.abs(answer.bias) > 1e-3) terms.push(["+ bias of the distance", answer.bias]);
  if (answer.additive) terms.splice(0, 2, ["score of the small network", answer.score]);
  terms.push(answer.masked ? ["masked", "−∞"] : ["score", answer.score], ["weight after the softmax", answer.weight]);
  return card(h("span", {}, h("bdi", {}, shown(part.queries[state.token])), " · ", h("bdi", {}, shown(part.keys[state.key]))), `query times key, dimension by dimension (head ${head})`,
    strip("query", answer.query), strip("key", answer.key), chart,
    h("table", { class: "sums" }, h("tbody", {}, terms.map(([name, value]) => h("tr", {}, h("th", { scope: "row" }, name),
      h("td", { class: "n", "data-term": name }, typeof value === "number" ? number(value, 4) : value))))));
}
