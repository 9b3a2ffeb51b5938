// Right for the wrong reason: words that the model relies on, over a data set, and what they do to answers.

import { bar, card, h, number, notice, percent } from "./dom.js";
import { jobBox } from "./jobs.js";

export const id = "reasons";
export const title = "Right for the wrong reason";
export const about = "Words that the model relies on and that should not matter";
export const withoutText = true;

export async function render(root, { page, model }) {
  root.append(card("Right for the wrong reason", null, h("p", {}, "A model can be right on the test set because of words that have nothing to do with the question: a name, a number, a signature at the end. Below are the words that speak most for each class, over a data set. ",
    "For each one ask: should this word matter? If not, the score will not hold where the word is missing.")));
  if (!model.labels.length && model.task !== "classify" && model.task !== "pair") {
    root.append(notice("This view is for models that predict classes. What this model can show instead: Why this answer explains a single text."));
    return;
  }
  root.append(await jobBox({ name: "words", label: "Find the words it relies on", page, show }));
}

const score = (value) => (value ? `${percent(value.value)} (${percent(value.low)} to ${percent(value.high)})` : "–");

function show(result) {
  const classes = result.classes.map((each) => {
    const largest = Math.max(1e-9, ...each.words.map((word) => Math.abs(word.score)));
    const drop = each.accuracy && each.accuracy_without ? each.accuracy.value - each.accuracy_without.value : null;
    return h("section", { class: "card", "data-class": each.label }, h("h2", { dir: "auto" }, each.label), h("p", { class: "faint about" }, `${each.texts} texts are predicted as this class.`),
      each.accuracy ? h("p", { class: "small" }, `Accuracy on the texts with these words ${score(each.accuracy)}; with the words erased ${score(each.accuracy_without)}.`, drop > 0.1 ? h("span", { class: "warn" }, ` ${(100 * drop).toFixed(0)} points hang on these words.`) : null) : null,
      each.words.length ? h("div", { class: "reliance" }, each.words.map((word) => wordRow(word, largest))) : notice("No word occurs often enough."));
  });
  return [h("p", { class: "faint small" }, `${result.texts} texts, explained by ${result.method.replaceAll("_", " ")}; share: how many of the texts with the word have this label.`), h("div", { class: "even" }, classes)];
}

function wordRow(word, largest) {
  const share = Number.isFinite(word.share) && word.share !== null ? percent(word.share) : "–";
  return h("details", { "data-word": word.word, "data-score": word.score }, h("summary", {}, h("span", { class: "name", dir: "auto" }, word.word), bar(word.score, largest, word.score < 0 ? "c1" : "c0"), h("span", { class: "n" }, number(word.score, 2)), h("span", { class: "n faint small" }, `${word.texts} texts`), h("span", { class: "n faint small" }, `share ${share}`)),
    word.examples.map((example) => h("div", { class: "example" }, h("p", { dir: "auto" }, example.text, h("b", { class: "n" }, ` ${percent(example.probability)}`)), h("p", { dir: "auto", class: "faint" }, example.without, h("b", { class: "n" }, ` ${percent(example.probability_without)}`)))));
}
