// The answer of the model, above all views: words, bars, and spans marked in the text.

import { h, percent } from "./dom.js";
import { pieces } from "./spans.js";

const TITLES = { classes: "Answer", number: "Answer", entities: "Entities", span: "Answer", translation: "Translation",
  next: "Next word", masks: "Masked word", similarity: "Answer", none: "" };

function marked(text, spans) {
  return pieces(text, spans).map(({ text: part, span }) => (span ? h("mark", { title: span.score === undefined ? null : percent(span.score) }, part,
    span.label && span.label !== "answer" ? h("sub", {}, span.label) : null) : part));
}

export function answerBars(answer, most = 6) {
  return h("ul", { class: "bars", "aria-label": "Probabilities" }, answer.bars.slice(0, most).map(([name, score]) =>
    h("li", { "data-score": score }, h("span", { class: "name", dir: "auto" }, name.trim() || "␣"),
      h("span", { class: "bar c0" }, h("span", { style: { width: `${100 * score}%` } })), h("span", { class: "n" }, percent(score)))));
}

export function answerBox(answer, texts) {
  const title = TITLES[answer.kind] ?? "Answer";
  const box = h("div", { class: `answer ${answer.kind}` });
  if (!title) return h("p", { class: "faint small" }, answer.text);
  box.append(h("div", { class: "said" }, h("span", { class: "faint" }, title), h("b", { dir: "auto" }, answer.text)));
  if (answer.bars.length > 1) box.append(answerBars(answer));
  if (answer.spans.length) box.append(h("p", { class: "marked", dir: "auto" }, marked(answer.where === 1 ? texts.pair : texts.text, answer.spans)));
  return box;
}
