// Two models on one text: answers, the heads of both, and where they differ.

import { input, request, unpack } from "./api.js";
import { card, h, notice, number, select } from "./dom.js";
import { answerBox } from "./answer.js";
import { hasCanvas, heatMap } from "./heatmap.js";
import { isStrong, shade } from "./colors.js";
import { set, state } from "./store.js";

export const id = "compare";
export const title = "Two models";
export const about = "Two models side by side on one text";

export async function render(root, { page }) {
  if (page.models.length < 2) {
    root.append(card("One model is open", null, h("p", {}, "To see two models side by side, for instance before and after fine-tuning, or a teacher and its student, start the page with both:"),
      h("pre", {}, `regard look ${page.models[0].name} "a text" --compare OTHER_MODEL`)));
    return;
  }
  const readings = await Promise.all(page.models.map((_, model) => request("read", input({ model: model || null }))));
  const sides = await Promise.all(page.models.map((model, which) => side(page.models[which], readings[which], which)));
  root.append(h("div", { class: "even" }, sides));
  root.append(await difference());
}

async function side(model, reading, which) {
  const part = reading.parts.find((each) => each.name === (state.part || reading.parts[0]?.name)) || reading.parts[0];
  const answer = await request("answer", input({ model: which || null }));
  const box = card(h("bdi", {}, model.name), `${model.family}, ${model.layers + model.decoder_layers} layers, ${model.heads} heads, ${reading.tokens.length} tokens`, answerBox(answer, state));
  if (!part || !hasCanvas()) {
    box.append(notice(part ? "This browser draws no canvas." : `This model is a ${model.network}; it has no attention to draw.`));
    return box;
  }
  const layer = Math.min(state.layer || 1, part.layers);
  const head = Math.min(state.heads[0] ?? 0, part.heads - 1);
  const values = await request("map", input({ model: which || null, part: part.name, layer, heads: [head] }));
  const map = heatMap({ queries: part.queries, keys: part.keys, mask: part.masks[layer - 1], name: `${model.name}, layer ${layer}, head ${head}`,
    chosen: [state.token, state.key], choose: (token, key) => set({ token, key }), weights: unpack(values.weights) });
  box.append(h("div", { class: "controls" }, part.layers > 1 ? select(`Layer of ${model.name}`, options(part.layers, 1), layer, (value) => set({ layer: Number(value) })) : null,
    part.heads > 1 ? select(`Head of ${model.name}`, options(part.heads, 0), head, (value) => set({ heads: [Number(value)] })) : null), map);
  return box;
}

const options = (count, first) => Array.from({ length: count }, (_, at) => [at + first, String(at + first)]);

async function difference() {
  const words = "Half of the sum of the differences of two rows of weights, averaged over the rows: 0 if both heads attend alike, 1 if they share nothing.";
  let values;
  try {
    values = await request("difference", input({ part: state.part || null }));
  } catch (error) {
    return card("Where they differ", words, notice(error.message));
  }
  const { numbers, factor, shape } = unpack(values.difference);
  const [layers, heads] = shape;
  const rows = Array.from({ length: layers }, (_, layer) => h("tr", {}, h("th", { scope: "row" }, `layer ${layer + 1}`),
    Array.from({ length: heads }, (__, head) => {
      const value = numbers[layer * heads + head] * factor;
      return h("td", { class: "cell", style: { background: shade(value), color: isStrong(value) ? "var(--card)" : "var(--ink)" } },
        h("button", { type: "button", "data-value": value.toFixed(5), "data-focus": `difference ${layer} ${head}`, "aria-label": `layer ${layer + 1}, head ${head}: ${number(value)}`,
          onclick: () => set({ layer: layer + 1, heads: [head] }) }, value.toFixed(2)));
    }), h("td", { class: "n faint" }, values.states ? number(values.states[layer + 1], 2) : "")));
  return card("Where they differ", words, values.notices.map((text) => notice(text)), h("div", { class: "scroll" }, h("table", { class: "heat" }, h("thead", {}, h("tr", {}, h("th", {}),
    Array.from({ length: heads }, (_, head) => h("th", { scope: "col" }, `head ${head}`)), h("th", { scope: "col" }, values.states ? "states" : ""))), h("tbody", {}, rows))),
    values.states ? h("p", { class: "faint small" }, "states: mean cosine of the hidden states after the layer; 1 is the same direction.") : null);
}
