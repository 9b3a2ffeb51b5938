// How an answer is shown, by what it has. Everything is text, never HTML of the answer.
const SHOWN = 8; // numbers of a long list in the JSON

export function element(name, className, ...children) {
  const node = document.createElement(name);
  if (className) node.className = className;
  node.append(...children);
  return node;
}

function rounded(value) {
  const size = Math.abs(value);
  if (size > 0 && size < 0.001) return value < 0 ? "> -0.001" : "< 0.001";
  return value.toFixed(size >= 100 ? 0 : size >= 10 ? 1 : size >= 1 ? 2 : 3);
}

// One row per name: its score as a bar and a number. A full bar is 1, a probability, or the largest number above it.
function bars(pairs) {
  const largest = Math.max(...pairs.map(([, score]) => Math.abs(score)), 1);
  const rows = pairs.map(([name, score]) => {
    const bar = element("span", "bar");
    bar.style.width = `${(100 * Math.abs(score)) / largest}%`;
    return element("li", "", element("span", "name", name), element("span", "track", bar), element("span", "n", rounded(score)));
  });
  return element("ul", "bars", ...rows);
}

// Offsets are code points, strings of JavaScript are UTF-16.
function marked(text, spans) {
  const points = Array.from(text);
  const parts = [];
  let end = 0;
  for (const span of spans) {
    if (span.start < end) continue;
    const mark = element("mark", `color-${span.color ?? 0}`, points.slice(span.start, span.end).join(""));
    if (span.label) mark.append(element("small", "", span.label));
    parts.push(points.slice(end, span.start).join(""), mark);
    end = span.end;
  }
  return element("p", "text", ...parts, points.slice(end).join(""));
}

function entities(answer, text) {
  const labels = [...new Set(answer.entities.map((entity) => entity.label))].sort();
  const spans = answer.entities.map((entity) => ({ ...entity, color: labels.indexOf(entity.label) % 5 }));
  return [marked(text, spans), element("p", "faint", answer.entities.length ? "" : "No entities.")];
}

// Words that speak for the answer are blue, words against it red.
function explanation(answer) {
  const largest = Math.max(...answer.words.map((word) => Math.abs(word.score)), 1e-9);
  const words = answer.words.flatMap((word) => {
    const node = element("span", word.score < 0 ? "against" : "for", word.text);
    node.style.setProperty("--share", `${Math.round((60 * Math.abs(word.score)) / largest)}%`);
    node.title = rounded(word.score);
    return [node, " "];
  });
  const legend = element("p", "faint", "Blue: the word raised the score. Red: it lowered it. Point at a word to see its number.");
  return [element("p", "headline", answer.target.description), element("p", "text", ...words), legend];
}

// A vector as thin columns around a middle line.
function vector(values) {
  const largest = Math.max(...values.map(Math.abs), 1e-9);
  const name = "http://www.w3.org/2000/svg";
  const picture = document.createElementNS(name, "svg");
  picture.setAttribute("viewBox", `0 -1 ${values.length} 2`);
  picture.setAttribute("preserveAspectRatio", "none");
  picture.setAttribute("aria-hidden", "true");
  for (const [index, value] of values.entries()) {
    const column = document.createElementNS(name, "rect");
    const height = Math.abs(value) / largest;
    for (const [key, number] of Object.entries({ x: index + 0.1, y: value > 0 ? -height : 0, width: 0.8, height })) {
      column.setAttribute(key, number);
    }
    picture.append(column);
  }
  const length = Math.hypot(...values);
  return [element("p", "headline", `${values.length} numbers, length ${rounded(length)}`), picture];
}

function tokens(answer) {
  const chips = answer.tokens.map((token, index) =>
    element("span", answer.special[index] ? "chip special" : "chip", token, element("small", "", String(answer.ids[index]))));
  return [element("p", "headline", `${chips.length} tokens`), element("p", "chips", ...chips)];
}

function answered(answer, context) {
  if (!answer.answer) return [element("p", "headline", "No answer in this context.")];
  const candidates = (answer.candidates ?? []).slice(0, 5).map((each) => [each.answer || "no answer", each.score]);
  return [element("p", "headline", answer.answer), marked(context, [answer]), bars(candidates)];
}

// The parts that show an answer to a text, or to two.
export function shown(answer, text, second) {
  if (answer.entities) return entities(answer, text);
  if (answer.embedding) return vector(answer.embedding);
  if (answer.masks) return answer.masks.map((words) => bars(words.map((each) => [each.word, each.score])));
  if (answer.words && answer.target) return explanation(answer);
  if (answer.tokens && answer.ids) return tokens(answer);
  if (answer.answer !== undefined) return answered(answer, second);
  const number = answer.value === undefined ? undefined : rounded(answer.value);
  const headline = answer.labels?.join(", ") || (answer.label ?? answer.translation ?? answer.text ?? number);
  const parts = headline === undefined ? [] : [element("p", "headline", String(headline) || "(empty)")];
  if (answer.scores) parts.push(bars(Object.entries(answer.scores).sort((one, other) => other[1] - one[1])));
  return parts;
}

// JSON with lists of numbers on one line; long ones are shortened.
export function json(value, indent = "") {
  if (value === null || typeof value !== "object") return JSON.stringify(value);
  const inner = `${indent}  `;
  if (!Array.isArray(value)) {
    const lines = Object.entries(value).map(([key, each]) => `${inner}${JSON.stringify(key)}: ${json(each, inner)}`);
    return lines.length ? `{\n${lines.join(",\n")}\n${indent}}` : "{}";
  }
  if (value.every((each) => each === null || typeof each !== "object")) {
    const first = value.length > 4 * SHOWN ? value.slice(0, SHOWN) : value;
    const rest = value.length > first.length ? `, … ${value.length - first.length} more` : "";
    return `[${first.map((each) => JSON.stringify(each)).join(", ")}${rest}]`;
  }
  return `[\n${value.map((each) => inner + json(each, inner)).join(",\n")}\n${indent}]`;
}
