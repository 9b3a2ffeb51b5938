// Meaning in context: one word in several sentences, its vectors by layer.

import { isFile, request } from "./api.js";
import { card, h, notice, number, s } from "./dom.js";
import { HEADS, isStrong, shade } from "./colors.js";
import { letters, slice } from "./spans.js";
import { set, state } from "./store.js";

export const id = "meaning";
export const title = "Meaning in context";
export const about = "One word in several sentences";
export const withoutText = true;

export const EXAMPLE = { word: "bank", sentences: ["She sat on the grassy bank of the river.", "They fished from the muddy bank all day.", "The boat was tied to the left bank.",
  "He keeps his money in the bank.", "The bank raised its interest rates.", "She took a loan from the bank."].join("\n") };

export async function render(root, { model }) {
  const word = state.word || EXAMPLE.word;
  const sentences = state.sentences || EXAMPLE.sentences;
  const field = h("input", { type: "text", value: word, dir: "auto", "aria-label": "Word", "data-focus": "word", readonly: isFile });
  const area = h("textarea", { rows: 6, dir: "auto", "aria-label": "Sentences, one per line", "data-focus": "sentences", value: sentences, readonly: isFile });
  root.append(card(null, null, h("form", { class: "meaning-form", onsubmit: (event) => { event.preventDefault(); set({ word: field.value.trim(), sentences: area.value.trim() }); } },
    h("label", { class: "field" }, h("span", {}, "Word"), field), h("label", { class: "field grow" }, h("span", {}, "Sentences with the word, one per line"), area), isFile ? null : h("button", { type: "submit", class: "go" }, "Compare"))));
  let values;
  try {
    values = await request("meaning", { word, sentences });
  } catch (error) {
    root.append(notice(error.message, "error"));
    return;
  }
  const last = values.layers.length - 1;
  const own = model.ends_with_mean ? last - 1 : last; // after a layer that averages, all tokens are nearly equal
  const layer = state.at === "" || state.at === undefined ? own : Math.min(last, Number(state.at));
  const slider = h("input", { type: "range", min: 0, max: last, value: layer, "aria-label": "Layer", "data-focus": "layer of meaning", onchange: () => set({ at: slider.value }) });
  const shown = values.occurrences.map((one, at) => {
    const all = letters(one.sentence);
    return h("li", { style: { "--dot": HEADS[at % HEADS.length] } }, h("i", {}, String(at + 1)), h("span", { dir: "auto" }, slice(all, 0, one.start), h("b", {}, slice(all, one.start, one.end)), slice(all, one.end)));
  });
  root.append(h("label", { class: "slider" }, h("span", {}, "layer"), slider, h("output", { class: "n" }, layer === 0 ? "embedding" : String(layer))));
  root.append(h("div", { class: "even" }, card("Its vectors in two dimensions", "The two main directions (PCA) of this layer; near dots mean similar uses.", scatter(values.points[layer])),
    card("The sentences", null, h("ol", { class: "dots" }, shown))));
  root.append(h("div", { class: "even" }, card(layer === 0 ? "Cosines of the embeddings" : `Cosines after layer ${layer}`, "How similar the word is to itself in another sentence.", cosines(values.cosines[layer])),
    card("Cosines of the static vectors", "One vector for the word, whatever the sentence: this is all that word2vec has.", cosines(values.static_cosines),
      h("h3", {}, "Nearest tokens of the static vector"), h("p", { class: "near" }, values.neighbors[0].map((near) => h("span", { class: "tag c3" }, h("bdi", {}, near.token), ` ${number(near.similarity, 2)}`))))));
}

function scatter(points) {
  const [width, height, edge] = [460, 320, 34];
  const bounds = [0, 1].map((side) => [Math.min(...points.map((point) => point[side])), Math.max(...points.map((point) => point[side]))]);
  const span = Math.max(bounds[0][1] - bounds[0][0], bounds[1][1] - bounds[1][0], 1e-9);
  const place = (point, side, size) => size / 2 + ((point[side] - (bounds[side][0] + bounds[side][1]) / 2) / span) * (Math.min(width, height) - 2 * edge) * (side === 1 ? -1 : 1);
  return s("svg", { class: "scatter", viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": "One dot for each sentence; the tables have the cosines" },
    s("line", { x1: 0, x2: width, y1: height / 2, y2: height / 2, class: "axis" }), s("line", { x1: width / 2, x2: width / 2, y1: 0, y2: height, class: "axis" }),
    points.map((point, at) => s("g", { class: "dot", "data-x": point[0], "data-y": point[1] }, s("circle", { cx: place(point, 0, width), cy: place(point, 1, height), r: 12, fill: HEADS[at % HEADS.length] }),
      s("text", { x: place(point, 0, width), y: place(point, 1, height) + 4.5, "text-anchor": "middle" }, String(at + 1)))));
}

function cosines(rows) {
  return h("div", { class: "scroll" }, h("table", { class: "heat" }, h("thead", {}, h("tr", {}, h("th", {}), rows.map((_, at) => h("th", { scope: "col" }, String(at + 1))))),
    h("tbody", {}, rows.map((row, at) => h("tr", {}, h("th", { scope: "row" }, String(at + 1)), row.map((value) => {
      const level = Math.max(0, value) ** 1.6;
      return h("td", { class: "cell", "data-value": value, style: { background: shade(level), color: isStrong(level) ? "var(--card)" : "var(--ink)" } }, number(value, 2));
    }))))));
}
