// The answer of the model, above all views: words, bars, and spans marked in the text.

import { h, percent } from "./dom.js";

const TITLES = { classes: "Answer", number: "Answer", entities: "Entities", span: "Answer", translation: "Translation",
  next: "Next word", masks: "Masked word", similarity: "Answer", none: "" };

function marked(text, spans) {
  const parts = [];
  let at = 0;
  for (const span of [...spans].sort((one, two) => one.start - two.start)) {
    if (span.start < at) continue;
    parts.push(text.slice(at, span.start));
    parts.push(h("mark", { title: span.score === undefined ? null : percent(span.score) }, text.slice(span.start, span.end),
      span.label && span.label !== "answer" ? h("sub", {}, span.label) : null));
    at = span.end;
  }
  return [...parts, text.slice(at)];
}

export function answerBox(answer, texts) {
  const title = TITLES[answer.kind] ?? "Answer";
  const box = h("div", { class: `answer ${answer.kind}` });
  if (!title) return h("p", { class: "faint small" }, answer.text);
  box.append(h("div", { class: "said" }, h("span", { class: "faint" }, title), h("b", { dir: "auto" }, answer.text)));
  if (answer.bars.length > 1) {
    box.append(h("ul", { class: "bars", "aria-label": "Probabilities" }, answer.bars.slice(0, 6).map(([name, score]) =>
      h("li", { "data-score": score }, h("span", { class: "name", dir: "auto" }, name.trim() || "␣"),
        h("span", { class: "bar c0" }, h("span", { style: { width: `${100 * score}%` } })), h("span", { class: "n" }, percent(score))))));
  }
  if (answer.spans.length) {
    const text = answer.where === 1 ? texts.pair : texts.text;
    box.append(h("p", { class: "marked", dir: "auto" }, marked(text.length > 4000 ? text.slice(0, 4000) : text, answer.spans)));
  }
  return box;
}
