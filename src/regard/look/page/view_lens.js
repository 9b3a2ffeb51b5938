// Lens: what each layer would predict through the model's own head.

import { input, request } from "./api.js";
import { card, h, notice, number, percent, s } from "./dom.js";
import { headColor, isStrong, shade } from "./colors.js";
import { set, state } from "./store.js";

export const id = "lens";
export const title = "Lens";
export const about = "What each layer would predict";

const MOST = 6;
const MOST_COLUMNS = 160; // tokens that a table has columns for
const clean = (token) => token.replace(/^##|^[Ġ▁]/, "") || token;
const layerName = (layer) => (layer === 0 ? "embedding" : `layer ${layer}`);

export async function render(root, { reading, model }) {
  let lens;
  try {
    lens = await request("lens", input());
  } catch (error) {
    root.append(card("No predictions by layer", null, notice(error.message), h("p", {}, model.parts.length ? "What this model can show instead: Heads, Step by step and Meaning in context." : "What this model can show instead: Why this answer and What if.")));
    return;
  }
  if (lens.tokens.length > MOST_COLUMNS && lens.kind !== "classes") root.append(notice(`Of ${lens.tokens.length} tokens, ${MOST_COLUMNS} around the chosen one are shown.`));
  if (lens.windows > 1) root.append(notice(`This text is read in ${lens.windows} windows; the first one is shown.`));
  const views = { classes: classes, words: words, tags: tags, spans: spans };
  root.append(...views[lens.kind](lens, reading));
}

function classes(lens, reading) {
  const last = lens.probabilities[lens.probabilities.length - 1];
  const labels = lens.labels.length ? lens.labels : last.map((_, at) => `class ${at}`);
  const ranked = last.map((value, at) => [value, at]).sort((one, two) => two[0] - one[0]).slice(0, MOST).map(([, at]) => at);
  const [width, height] = [760, 240];
  const x = (layer) => 40 + ((width - 60) * layer) / Math.max(1, lens.layers.length - 1);
  const y = (value) => 12 + (height - 44) * (1 - value);
  const chart = s("svg", { class: "chart", viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": "Probability of each class by layer; the table below has the numbers" },
    [0, 0.5, 1].map((value) => [s("line", { x1: 40, x2: width - 20, y1: y(value), y2: y(value), class: "axis" }), s("text", { x: 34, y: y(value) + 4, "text-anchor": "end" }, String(value))]),
    lens.layers.map((layer) => s("text", { x: x(layer), y: height - 8, "text-anchor": "middle" }, layer === 0 ? "emb." : String(layer))),
    ranked.map((label, at) => s("polyline", { class: "series", stroke: headColor(at), points: lens.probabilities.map((row, layer) => `${x(layer)},${y(row[label])}`).join(" ") })));
  const legend = h("ul", { class: "legend" }, ranked.map((label, at) => h("li", {}, h("i", { style: { background: headColor(at) } }), h("span", { dir: "auto" }, labels[label]))));
  return [card("Class probabilities by layer", "The hidden states after each layer go through the model's own head, as if the layer were the last one. Early layers were never trained to be read this way.", chart, legend),
    card(null, null, heat(lens.layers.map(layerName), ranked.map((label) => labels[label]), (layer, column) => [lens.probabilities[layer][ranked[column]], null]))];
}

// A table of rows × columns; `cell` returns the value that colors it and its words (the value itself if null).
function heat(rows, all, allCells, { choose: allChoose, chosen: allChosen = -1, details: allDetails } = {}) {
  const first = all.length > MOST_COLUMNS ? Math.max(0, Math.min(all.length - MOST_COLUMNS, Math.max(allChosen, state.token) - MOST_COLUMNS / 2)) : 0;
  const columns = all.slice(first, first + MOST_COLUMNS);
  const cell = (row, column) => allCells(row, first + column);
  const choose = allChoose && ((column) => allChoose(first + column));
  const details = allDetails && ((row, column) => allDetails(row, first + column));
  const chosen = allChosen - first;
  return h("div", { class: "scroll" }, h("table", { class: "heat lens" }, h("thead", {}, h("tr", {}, h("th", {}), columns.map((name, column) => h("th", { scope: "col", class: column === chosen ? "chosen" : null },
    choose ? h("button", { type: "button", class: "token", dir: "auto", "data-focus": `column ${column}`, "aria-pressed": String(column === chosen), onclick: () => choose(column) }, name) : h("bdi", {}, name))))),
    h("tbody", {}, rows.map((name, row) => h("tr", {}, h("th", { scope: "row" }, name), columns.map((_, column) => {
      const [value, text] = cell(row, column);
      return h("td", { class: "cell", "data-value": value.toFixed(6), title: details ? details(row, column) : null, dir: "auto", style: { background: shade(value), color: isStrong(value) ? "var(--card)" : "var(--ink)" } }, text ?? value.toFixed(2));
    }))))));
}

const names = (lens) => lens.tokens.map(clean);

function words(lens) {
  const order = [...lens.layers].reverse();
  const column = Math.min(Math.max(0, state.token < 0 ? lens.tokens.length - 1 : state.token), lens.tokens.length - 1);
  const table = heat(order.map(layerName), names(lens), (row, at) => {
    const best = lens.words[order[row]][at][0];
    return [best.probability, clean(best.token)];
  }, { choose: (token) => set({ token }), chosen: column, details: (row, at) => lens.words[order[row]][at].map((word) => `${clean(word.token)} ${percent(word.probability)}`).join("\n") });
  const list = order.map((layer) => h("tr", {}, h("th", { scope: "row" }, layerName(layer)), lens.words[layer][column].map((word) => h("td", {}, h("bdi", {}, clean(word.token)), " ", h("span", { class: "faint" }, percent(word.probability))))));
  return [card("The most likely word at every position", "Columns are the tokens of the text, rows the layers, the last on top. A cell is the word that the layer would predict there; the darker, the surer.", table),
    card(h("span", {}, "At ", h("bdi", {}, clean(lens.tokens[column]))), "The five most likely words of each layer at the chosen position.", h("div", { class: "scroll" }, h("table", { class: "sorted" }, h("tbody", {}, list))))];
}

function tags(lens) {
  const order = [...lens.layers].reverse();
  const labels = lens.labels;
  const best = (row, at) => lens.probabilities[order[row]][at].reduce((most, value, label) => (value > most[0] ? [value, label] : most), [-1, 0]);
  return [card("The most likely tag at every token", "Rows are layers, the last on top.", heat(order.map(layerName), names(lens), (row, at) => {
    const [value, label] = best(row, at);
    return [value, labels[label] ?? String(label)];
  }, { details: (row, at) => lens.probabilities[order[row]][at].map((value, label) => `${labels[label] ?? label} ${percent(value)}`).join("\n") }))];
}

function spans(lens) {
  const order = [...lens.layers].reverse();
  return ["start", "end"].map((name, side) => card(`Where the answer ${name}s`, "Probability of every token by layer, the last on top.", heat(order.map(layerName), names(lens), (row, at) => {
    const value = lens.probabilities[order[row]][at][side];
    return [value, value < 0.01 ? "" : number(value, 2)];
  })));
}
