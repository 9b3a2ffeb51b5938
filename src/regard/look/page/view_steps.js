// Step by step: the arithmetic of one head at one token, the positions, and what a changed word changes downstream.

import { input, isFile, request, unpack } from "./api.js";
import { bar, card, h, notice, number, s, table } from "./dom.js";
import { isStrong, shade } from "./colors.js";
import { set, state } from "./store.js";
import { shown, tokenList } from "./tokens.js";
import { matrix, vector } from "./strip.js";
import { controls, noAttention } from "./view_heads.js";

export const id = "steps";
export const title = "Step by step";
export const about = "The arithmetic of one head, with the numbers of this text";

const MOST_COLUMNS = 120; // tokens that a table has columns for
const MOST_TOKENS = 600; // tokens that are listed as buttons

export async function render(root, { page, reading, part, model }) {
  if (!part) {
    root.append(noAttention(model));
    return;
  }
  if (part.name === "alignment") {
    root.append(card("One map, no heads", null, h("p", {}, "This recurrent network has no heads of queries, keys and values. Its alignment is one softmax over the source for each word it writes: Heads shows it.")));
    return;
  }
  const token = state.token >= 0 ? state.token : Math.min(1, part.queries.length - 1);
  const head = state.heads[0];
  root.append(h("div", { class: "bar-of-controls" }, h("div", { class: "grow" }, h("span", { class: "faint small" }, "Token"),
    part.queries.length > MOST_TOKENS ? h("input", { type: "number", min: 0, max: part.queries.length - 1, value: token, "aria-label": "Token", "data-focus": "token number", onchange: (event) => set({ token: Math.max(0, Math.min(part.queries.length - 1, Number(event.target.value) || 0)) }) }) :
      tokenList("Token", part.queries, { chosen: token, choose: (place) => set({ token: place }) })), controls(reading, part, { several: false })));
  if (isFile) {
    const saved = page.file?.steps[part.name] || [];
    root.append(h("p", { class: "faint small saved-steps" }, savedWords(saved, part)));
    if (!saved.some(([one, two, three]) => one === state.layer && two === head && three === token)) {
      root.append(missing(saved, part, head, token));
      return;
    }
  }
  let values;
  try {
    values = await request("steps", input({ part: part.name, layer: state.layer, head, token }));
  } catch (error) {
    root.append(notice(error.message, "error"));
    return;
  }
  const names = values.keys.map((place) => shown(part.keys[place]));
  root.append(h("ol", { class: "steps" }, steps(values, { model, part, head, token: part.queries[token], names })));
  root.append(await positionCard(model, token));
  if (!reading.target.length && !isFile) root.append(await changeCard(reading, part, token));
}

const entry = ([layer, head, token], part) => `layer ${layer}, head ${head}, “${shown(part.queries[token])}”`;

// A page in a file holds one head at every token, every head at one token, and one head of every layer.
function savedWords(saved, part) {
  if (!saved.length) return "This file holds no steps; regard look MODEL shows them.";
  const layers = saved.map(([layer]) => layer);
  const layer = [...new Set(layers)].sort((one, two) => layers.filter((each) => each === two).length - layers.filter((each) => each === one).length)[0];
  const tokens = saved.filter(([one, two]) => one === layer && two === 0).map(([, , three]) => three);
  const token = saved.find(([one, two]) => one !== layer || two > 0)?.[2] ?? tokens[0];
  const every = tokens.length === part.queries.length ? "every token" : `the first ${tokens.length} tokens`;
  return `This file holds the steps of head 0 of layer ${layer} at ${every}, and at “${shown(part.queries[token])}” those of every head of layer ${layer} and of head 0 of every layer. regard look MODEL shows all others.`;
}

function missing(saved, part, head, token) {
  const near = [...saved].sort((one, two) => distance(one, head, token) - distance(two, head, token)).slice(0, 3);
  return card("Not in this file", null, h("p", {}, `The steps of ${entry([state.layer, head, token], part)} are not in this file. The nearest that are:`),
    h("div", { class: "tools" }, near.map((each) => h("button", { type: "button", class: "go-to", onclick: () => set({ layer: each[0], heads: [each[1]], token: each[2] }) }, entry(each, part)))));
}

const distance = ([layer, head, token], wantedHead, wantedToken) => 4 * (token !== wantedToken) + 2 * (layer !== state.layer) + (head !== wantedHead);

function step(heading, formula, shape, ...children) {
  return h("li", { class: "card step" }, h("h2", {}, heading), h("p", { class: "formula" }, h("span", {}, formula), h("span", { class: "faint shape" }, shape)), ...children);
}

function steps(values, { model, part, head, token, names }) {
  const D = values.input.length;
  const K = values.query.length;
  const S = values.all_keys;
  const some = values.keys.length < S ? notice(`Of ${S} keys, the ${values.keys.length} with the largest weights are shown.`) : null;
  const list = [];
  if (values.embedding) list.push(embeddingStep(values.embedding, token, D));
  const before = state.layer > 1 || part.name === "cross" ? h("p", { class: "faint small" }, part.name === "cross" ? "The token's state after the decoder's own attention is the input." : `The state of this token after layer ${state.layer - 1} is the input.`) : null;
  const keysFrom = part.name === "cross" ? "the encoder's states" : "all tokens";
  list.push(step("Query, keys and values", "q = x·W_q + b,  K = X·W_k + b,  V = X·W_v + b", `(1 × ${D}) · (${D} × ${K}) → (1 × ${K})`, before, some,
    values.norm_first ? vector("stream", values.residual) : null, vector(values.norm_first ? "x = norm(stream)" : "x", values.input), vector("q", values.query),
    values.rotated ? vector("q turned", values.rotated, model.positions === "rotary" ? "by its position" : "for the score") : null,
    h("div", { class: "even" }, matrix(`K, from ${keysFrom}`, values.key_vectors, names), matrix("V", values.value_vectors, names))));
  list.push(scoreStep(values, names, K));
  const sum = values.keys.map((_, at) => [values.weights[at], names[at]]).sort((one, two) => two[0] - one[0]).slice(0, 4)
    .map(([weight, name]) => `${number(weight, 2)}·v(${name})`).join(" + ");
  list.push(step("Weighted sum of the values", `${sum}${S > 4 ? " + …" : ""}`, `(1 × ${S}) · (${S} × ${K}) → (1 × ${K})`, vector(`head ${head}`, values.mixed)));
  list.push(step("Output projection", `${part.heads} heads side by side · W_o + b`, `(1 × ${part.heads * K}) · (${part.heads * K} × ${D}) → (1 × ${D})`,
    vector(`from head ${head}`, values.contribution), vector("all heads", values.attention)));
  const after = values.norm_first ? "stream + attention" : "norm(x + attention)";
  list.push(step(values.norm_first ? "Residual" : "Residual and norm", after, `(1 × ${D})`, vector("sum", values.sum), values.normed ? vector("norm(sum)", values.normed) : null));
  list.push(step("Feed-forward", values.norm_first ? "stream + ffn(norm(stream))" : "norm(x + ffn(x)), each token on its own", `(1 × ${D}) → (1 × ${D})`, vector("ffn", values.feedforward), vector(`after layer ${state.layer}`, values.layer)));
  return list;
}

function embeddingStep(embedding, token, D) {
  const terms = ["token", embedding.position && "position", embedding.segment && "segment"].filter(Boolean).join(" + ");
  return step("Embedding and position", embedding.norm ? `x = norm(${terms})` : `x = ${terms}`, `row ${token.id} of (${embedding.rows.toLocaleString("en")} × ${embedding.token.length})`,
    vector("token", embedding.token, embedding.scale === 1 ? "" : `× ${number(embedding.scale, 1)}`), embedding.position ? vector("position", embedding.position) : h("p", { class: "faint small" }, "No position is added here: it enters with the scores, see Positions."),
    embedding.segment ? vector("segment", embedding.segment) : null, vector("x", embedding.total));
}

function scoreStep(values, names, K) {
  const most = Math.max(...values.scores.filter((_, at) => values.allowed[at]));
  const heads = ["key", values.is_product ? "q · k" : "score", values.is_product ? `× ${number(values.scale)}` : null, values.bias ? "+ bias" : null, "mask", "e^(score − max)", "weight", ""].filter((each) => each !== null);
  const rows = values.keys.map((place, at) => h("tr", { "data-key": place, class: values.allowed[at] ? null : "masked" },
    h("th", { scope: "row" }, h("bdi", {}, names[at])),
    h("td", { class: "n", "data-dot": values.dots[at] }, number(values.is_product ? values.dots[at] : values.scores[at], 2)),
    values.is_product ? h("td", { class: "n" }, number(values.dots[at] * values.scale, 2)) : null,
    values.bias ? h("td", { class: "n" }, number(values.bias[at], 2)) : null,
    h("td", {}, values.allowed[at] ? "✓" : "−∞"),
    h("td", { class: "n" }, values.allowed[at] ? number(Math.exp(values.scores[at] - most), 3) : "0"),
    h("td", { class: "n", "data-weight": values.weights[at] }, values.weights[at].toFixed(3)),
    h("td", { class: "wide-bar" }, bar(values.weights[at], 1))));
  const formula = values.is_product ? `score = q·k × ${number(values.scale)} (1/√${K} keeps the spread at 1), mask, softmax` : "score = v·tanh(W q + U k), mask, softmax";
  return step("Scores, scaling, mask, softmax", formula, `(1 × ${K}) · (${K} × ${values.all_keys}) → (1 × ${values.all_keys})`, table(heads, rows, { class: "scores" }));
}

async function positionCard(model, token) {
  const values = await request("positions", {});
  const names = { learned: "This model learned a vector for each position. The hands show the sinusoids of 2017, which need no learning.",
    rotary: "Rotary positions turn pairs of dimensions of queries and keys like the hands of clocks; the angle between two hands depends on their distance only.",
    none: "This model has no positions. The hands show the sinusoids of 2017." };
  const words = names[values.kind] || (values.bias ? "This model adds a bias to the score by distance, one curve for each head." : "Each pair of dimensions is the sine and cosine of a hand that turns with the position, the first fast, the last slowly.");
  if (values.bias) return card("Positions", words, biasPlot(values.bias));
  const clocks = s("svg", { class: "clocks", viewBox: `0 0 ${values.hands.length * 84} 112`, role: "img", "aria-label": "One clock for each pair of dimensions; the hand turns with the position" });
  const draw = (position) => {
    clocks.replaceChildren(...values.hands.flatMap(({ pair, rate }, at) => {
      const [x, y] = [at * 84 + 42, 44];
      const angle = position * rate;
      return [s("circle", { cx: x, cy: y, r: 36, class: "dial" }),
        ...[...Array(Math.min(position, 24)).keys()].map((back) => s("line", { x1: x, y1: y, x2: x + 34 * Math.sin((position - back - 1) * rate), y2: y - 34 * Math.cos((position - back - 1) * rate), class: "trace", "stroke-opacity": (0.3 * 0.88 ** back).toFixed(3) })),
        s("line", { x1: x, y1: y, x2: x + 34 * Math.sin(angle), y2: y - 34 * Math.cos(angle), class: "hand", "data-pair": pair, "data-angle": angle.toFixed(6) }),
        s("text", { x, y: 96, "text-anchor": "middle" }, `${2 * pair}, ${2 * pair + 1}`)];
    }));
    shownAt.textContent = String(position);
  };
  const shownAt = h("output", { class: "n" });
  const slider = h("input", { type: "range", min: 0, max: 127, value: Math.max(0, token), "aria-label": "Position", "data-focus": "position", oninput: () => draw(Number(slider.value)) });
  draw(Math.max(0, token));
  return card("Positions", words, h("label", { class: "slider" }, h("span", {}, "position"), slider, shownAt), h("div", { class: "scroll" }, clocks));
}

function biasPlot(bias) {
  const count = bias[0].length;
  const middle = (count - 1) / 2;
  const flat = bias.flat();
  const [low, high] = [Math.min(...flat), Math.max(...flat)];
  const point = (value, at) => `${(600 * at) / (count - 1)} ${10 + (100 * (high - value)) / (high - low || 1)}`;
  const svg = s("svg", { class: "bias", viewBox: "0 0 600 130", role: "img", "aria-label": `Bias by distance, from ${number(low)} to ${number(high)}` },
    s("line", { x1: 300, x2: 300, y1: 5, y2: 112, class: "axis" }),
    bias.map((values, head) => s("polyline", { points: values.map(point).join(" "), class: `curve${head === state.heads[0] ? " chosen" : ""}` })),
    s("text", { x: 0, y: 126 }, `${middle} before`), s("text", { x: 600, y: 126, "text-anchor": "end" }, `${middle} after`), s("text", { x: 300, y: 126, "text-anchor": "middle" }, "same place"));
  return svg;
}

async function changeCard(reading, part, token) {
  const chosen = part.queries[token];
  const editable = chosen.sequence === 0;
  const field = h("input", { type: "text", id: "change-word", value: state.change || "", dir: "auto", "aria-label": "Replacement", "data-focus": "change", maxlength: 200 });
  const form = h("form", { class: "tools", onsubmit: (event) => { event.preventDefault(); set({ change: field.value.trim() }); } },
    h("span", {}, "Replace ", h("b", {}, h("bdi", {}, shown(chosen))), " by"), field, h("button", { type: "submit", disabled: !editable }, "Compare"));
  const box = card("What a change of one word changes", "How far each state moves, relative to its length, layer by layer: at first only the changed word, then every word that attends to it.", form);
  if (!editable) box.append(h("p", { class: "faint" }, "Choose a word of the first text above; special tokens cannot be replaced."));
  else if (state.change) {
    const letters = Array.from(state.text);
    const changed = [...letters.slice(0, chosen.start), state.change, ...letters.slice(chosen.end)].join("");
    try {
      box.append(...await changedTable(changed, reading));
    } catch (error) {
      box.append(notice(error.message, "error"));
    }
  }
  return box;
}

async function changedTable(changed) {
  const answer = await request("change", input({ changed }));
  const { numbers, factor, shape, max } = unpack(answer.change);
  const [layers, count] = shape;
  const shownPairs = answer.pairs.map((pair, at) => [...pair, at]).filter(([before], at) => answer.pairs.length <= MOST_COLUMNS || Math.abs(before - state.token) <= MOST_COLUMNS / 2 || at === 0);
  const heads = shownPairs.map(([before, after]) => {
    const [one, two] = [shown(answer.before[before]), shown(answer.after[after])];
    return h("th", { scope: "col" }, h("bdi", {}, one === two ? one : `${one} → ${two}`));
  });
  const rows = Array.from({ length: layers }, (_, layer) => h("tr", {}, h("th", { scope: "row" }, layer === 0 ? "embedding" : `layer ${layer}`),
    shownPairs.map(([, , at]) => {
      const value = numbers[layer * count + at] * factor;
      const level = max > 0 ? value / max : 0;
      return h("td", { class: "cell", "data-value": value.toFixed(5), style: { background: shade(level), color: isStrong(level) ? "var(--card)" : "var(--ink)" } }, value.toFixed(2));
    })));
  const [before, after] = answer.answers;
  const moved = before.kind === "none" ? null : h("p", {}, "Answer: ", h("b", { dir: "auto" }, before.text), before.bars.length ? ` ${number(before.bars[0][1])}` : "", " → ", h("b", { dir: "auto" }, after.text), after.bars.length ? ` ${number(after.bars[0][1])}` : "");
  return [h("p", { class: "marked", dir: "auto" }, changed), moved, h("div", { class: "scroll" }, h("table", { class: "heat" }, h("thead", {}, h("tr", {}, h("th", {}), heads)), h("tbody", {}, rows)))].filter(Boolean);
}
