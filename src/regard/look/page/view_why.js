// Why this answer: every method side by side, each with its faithfulness on this text.

import { input, request } from "./api.js";
import { bar, card, h, notice, number, percent, select, table } from "./dom.js";
import { signed } from "./colors.js";
import { pieces } from "./spans.js";
import { jobBox } from "./jobs.js";
import { set, state } from "./store.js";

export const id = "why";
export const title = "Why this answer";
export const about = "Which words the answer comes from, by several methods";

const WORDS = { decomposition: "adds up through the layers to the logit", occlusion: "erases one word at a time", integrated_gradients: "gradients on the way from an empty text",
  attention_rollout: "weights multiplied through the layers", attention: "mean weights of the last layer" };

export async function render(root, { page, reading, isCurrent }) {
  const answer = await request("answer", input());
  const aims = targets(answer, page.models[0], reading);
  const values = await request("methods", {});
  const fitting = values.methods.filter((method) => !method.why_not);
  const explained = (method) => request("explain", input({ method: method.name, aim: state.aim || null })).catch((error) => error);
  const first = await explained(fitting.find((method) => method.name === values.default) || fitting[0]);
  if (first instanceof Error) {
    root.append(card("Nothing to explain", null, notice(first.message)));
    return;
  }
  root.append(h("div", { class: "bar-of-controls" }, h("p", { class: "lead" }, "What speaks for ", h("b", { dir: "auto" }, first.target.description), first.probability === null ? ` (${number(first.value)})` : ` (${percent(first.probability)})`, "?"),
    aims.length > 1 ? select("Explain", aims, state.aim || "", (aim) => set({ aim })) : null));
  root.append(notice(values.warning));
  if (first.windows > 1) root.append(notice(`This text is read in ${first.windows} windows; scores are means over them.`));
  const places = fitting.map((method) => h("div", { class: "card", "aria-busy": "true" }, h("h2", {}, method.title), h("p", { class: "faint" }, WORDS[method.name])));
  const box = h("div", {});
  root.append(h("div", { class: "even" }, places), box);
  fillIn(root, fitting, places, box, { explained, isCurrent, chosen: values.default });
  const rest = values.methods.filter((method) => method.why_not);
  if (rest.length) root.append(card("Methods that do not fit this model", null, h("ul", {}, rest.map((method) => h("li", {}, h("b", {}, method.title), `: ${method.why_not}.`)))));
  root.append(card("Faithfulness on a data set", "The same scores over many texts, with 95 % intervals. Normalized: between the worst (0) and the best (1) order of words that could be found, so that models can be compared.",
    await jobBox({ name: "faithfulness", label: "Measure all methods", page, show: dataTable })));
}

// Methods take from milliseconds to seconds: each card is filled in when its numbers are there.
async function fillIn(root, methods, places, box, { explained, isCurrent, chosen }) {
  const good = [];
  for (const [at, method] of methods.entries()) {
    const result = await explained(method);
    if (!isCurrent()) return;
    places[at].replaceWith(methodCard(method, result, method.name === chosen));
    if (!(result instanceof Error)) good.push([method, result]);
    const rows = summary(good, null);
    if (rows) box.replaceChildren(rows);
  }
  const searched = await request("limits", input({ aim: state.aim || null })).catch(() => null);
  if (!isCurrent()) return;
  const rows = summary(good, searched);
  if (rows) box.replaceChildren(rows);
  root.dataset.done = "true";
}

function targets(answer, model, reading) {
  const own = [["", "the answer"]];
  if (answer.kind === "classes") return [...own, ...(model.labels.length ? model.labels : answer.bars.map(([name]) => name)).map((name) => [name, name])];
  if (answer.kind === "entities") return [...own, ...answer.spans.map((span) => [`${span.text}=${span.label}`, `${span.text} (${span.label})`])];
  if (answer.kind === "translation") return [...own, ...(reading.written || "").split(/\s+/).filter(Boolean).map((word, at) => [String(at), `${at + 1}. ${word}`])];
  if (answer.kind === "next" || answer.kind === "masks") return [...own, ...answer.bars.map(([name]) => [name.trim(), name.trim()]).filter(([name]) => name)];
  return own;
}

export function colored(explanation) {
  const largest = Math.max(1e-9, ...explanation.words.map((word) => Math.abs(word.score)));
  return [explanation.text, explanation.pair].map((text, sequence) => (text ? h("p", { class: "colored", dir: "auto" },
    pieces(text, explanation.words.filter((word) => word.sequence === sequence)).map(({ text: part, span }) => (span ? h("span", { class: "word", title: `${span.text}: ${number(span.score, 4)}`,
      "data-score": span.score, style: { background: signed(span.score / largest), color: Math.abs(span.score) / largest > 0.5 ? "var(--card)" : "var(--ink)" } }, part) : part))) : null));
}

function methodCard(method, result, isDefault) {
  const heading = h("span", {}, method.title, isDefault ? h("span", { class: "tag c0 gap" }, "default") : null);
  if (result instanceof Error) return card(heading, WORDS[method.name], notice(result.message));
  const faithful = result.faithfulness;
  const gained = faithful ? faithful.comprehensiveness - faithful.random_comprehensiveness : null;
  const box = card(heading, WORDS[method.name], colored(result), h("p", { class: "faint small" }, method.signed ? "Blue speaks for it, red against it." : "Weights have no sign: they cannot speak against it.",
    result.delta === null || result.delta === undefined ? "" : Math.abs(result.delta) < 0.0005 ? " All parts add up to the value." : ` Not accounted for: ${number(result.delta, 4)}.`));
  if (faithful) box.append(h("p", { class: "small" }, "Without its top words the probability falls by ", h("b", {}, number(faithful.comprehensiveness)), `, in random order by ${number(faithful.random_comprehensiveness)}. `,
    gained > 0.01 ? "" : h("span", { class: "warn" }, "Not better than random on this text.")));
  box.dataset.method = method.name;
  return box;
}

// The comprehensiveness between the worst order of words (0) and the best one (1) that are known.
function normalizer(rows, searched) {
  if (!searched?.limits) return null;
  const values = rows.map(([, each]) => each.faithfulness.comprehensiveness);
  const [worst, best] = [Math.min(searched.limits[0], ...values), Math.max(searched.limits[1], ...values)];
  return best - worst > 1e-9 ? (value) => (value - worst) / (best - worst) : null;
}

function summary(results, searched) {
  const rows = results.filter(([, each]) => each.faithfulness).sort((one, two) => two[1].faithfulness.comprehensiveness - one[1].faithfulness.comprehensiveness);
  if (!rows.length) return null;
  const random = rows[0][1].faithfulness;
  const largest = Math.max(...rows.map(([, each]) => Math.abs(each.faithfulness.comprehensiveness)), random.random_comprehensiveness, 1e-9);
  const normalize = normalizer(rows, searched);
  const line = (name, comprehensiveness, sufficiency, top) => h("tr", { "data-row": name }, h("th", { scope: "row" }, name), h("td", { class: "n", "data-value": comprehensiveness }, number(comprehensiveness)), h("td", { class: "wide-bar" }, bar(Math.max(0, comprehensiveness), largest, name === "random order" ? "c3" : "c0")),
    h("td", { class: "n" }, number(sufficiency)), normalize ? h("td", { class: "n", "data-normalized": normalize(comprehensiveness) }, number(normalize(comprehensiveness), 2)) : null, h("td", { dir: "auto" }, top));
  const about = normalize ? " Normalized: between the worst (0) and the best (1) order of words that a search finds." :
    searched && !searched.limits && searched.words > searched.max_words ? ` Normalized scores are searched for texts of up to ${searched.max_words} words; regard explain --faithfulness has them for longer ones.` : "";
  return card("Faithfulness on this text", "Comprehensiveness: how far the probability falls when the most important 1, 5, 10, 20 and 50 % of the words are erased (higher is better). Sufficiency: how far it falls when only these are left (lower is better)." + about,
    table(["method", "comprehensiveness", "", "sufficiency", normalize ? "normalized" : null, "top words"].filter((name) => name !== null), [...rows.map(([method, each]) => line(method.title, each.faithfulness.comprehensiveness, each.faithfulness.sufficiency,
      [...each.words].sort((one, two) => two.score - one.score).slice(0, 3).map((word) => word.text).join(" · "))), line("random order", random.random_comprehensiveness, random.random_sufficiency, "")], { class: "sorted" }));
}

function dataTable(result) {
  const interval = (score) => (score ? h("td", { class: "n" }, number(score.value), h("span", { class: "faint small" }, `  ${number(score.low)} to ${number(score.high)}`)) : h("td", {}, "–"));
  return [h("p", { class: "faint small" }, `${result.texts} texts; words are erased by ${result.erased_by === "mask" ? "the mask token" : "removal"}.`),
    table(["method", "comprehensiveness", "sufficiency", "normalized"], result.methods.map((method) => h("tr", {}, h("th", { scope: "row" }, method.method.replaceAll("_", " ")), interval(method.comprehensiveness), interval(method.sufficiency), interval(method.normalized))))];
}
