// A heat map on a canvas: labels where there is room, zoom into parts, a cursor for the arrow keys.

import { h, number, say } from "./dom.js";
import { masked, onColorChange, ramp } from "./colors.js";
import { shown } from "./tokens.js";

const LABELS = 72; // tokens that still have room for their names
const REACH = 560; // pixels of the canvas

export function hasCanvas() {
  return Boolean(document.createElement("canvas").getContext);
}

// Draws one matrix (rows × columns of `numbers`, from `offset`) into a canvas, one pixel for each value.
export function paint(canvas, { numbers, offset = 0, rows, columns, levels, hidden }) {
  canvas.width = columns;
  canvas.height = rows;
  const context = canvas.getContext("2d");
  const image = context.createImageData(columns, rows);
  const colors = ramp();
  const empty = masked();
  for (let row = 0; row < rows; row += 1) {
    for (let column = 0; column < columns; column += 1) {
      const at = row * columns + column;
      const level = Math.min(255, Math.round(numbers[offset + at] * levels));
      const color = hidden && hidden(row, column) ? empty : colors.subarray(3 * level, 3 * level + 3);
      image.data.set(color, 4 * at);
      image.data[4 * at + 3] = 255;
    }
  }
  context.putImageData(image, 0, 0);
}

// One head: `weights` are its numbers, `chosen` is a pair of tokens, `choose` is called with another.
export function heatMap({ queries, keys, mask, weights, chosen, choose, name }) {
  const frame = h("div", { class: "heatmap" });
  const about = h("p", { class: "faint small readout" }, "\u00a0");
  let view = { rows: [0, queries.length], columns: [0, keys.length] };
  let cursor = [Math.max(0, chosen[0]), Math.max(0, chosen[1])];
  let darkest = 0;

  const isHidden = (row, column) => {
    const distance = column - (row + keys.length - queries.length);
    return (mask.right !== null && distance > mask.right) || (mask.left !== null && -distance > mask.left);
  };

  function show(rows, columns) {
    view = { rows: rows || [0, queries.length], columns: columns || [0, keys.length] };
    draw();
  }

  // The numbers of the part that is shown.
  function shownPart() {
    const [left, right] = view.columns;
    const width = right - left;
    const part = new weights.numbers.constructor((view.rows[1] - view.rows[0]) * width);
    for (let row = view.rows[0]; row < view.rows[1]; row += 1) {
      part.set(weights.numbers.subarray(row * keys.length + left, row * keys.length + right), (row - view.rows[0]) * width);
    }
    return part;
  }

  function read(row, column) {
    cursor = [row, column];
    const words = isHidden(row, column) ? "masked" : number(weights.numbers[row * keys.length + column] * weights.factor);
    const text = `${shown(queries[row])} → ${shown(keys[column])}: ${words}`;
    about.textContent = text;
    return text;
  }

  function draw() {
    const [height, width] = [view.rows[1] - view.rows[0], view.columns[1] - view.columns[0]];
    const canvas = h("canvas", { tabindex: "0", role: "img", "data-focus": name, class: "map",
      "aria-label": `${name}: rows are queries, columns are keys. Arrow keys move, Enter chooses, plus and minus zoom.` });
    if (!canvas.getContext) {
      frame.replaceChildren(h("p", { class: "notice" }, "This browser draws no canvas. The list of the strongest weights beside shows the same numbers."));
      return;
    }
    const hidden = mask.left === null && mask.right === null ? null : (row, column) =>
      isHidden(view.rows[0] + row, view.columns[0] + column);
    const numbers = shownPart();
    darkest = numbers.reduce((most, value) => Math.max(most, value), 0);
    paint(canvas, { numbers, rows: height, columns: width, levels: darkest > 0 ? 255 / darkest : 0, hidden });
    canvas.dataset.rows = view.rows.join("-");
    canvas.dataset.columns = view.columns.join("-");
    const largest = Math.max(height, width);
    const cell = largest <= 40 ? Math.max(11, Math.min(34, REACH / largest)) : REACH / largest;
    canvas.style.aspectRatio = `${width} / ${height}`;
    canvas.style.width = `${Math.round(width * cell)}px`;
    attach(canvas, height, width);
    const labeled = largest <= LABELS;
    const top = h("div", { class: "columns", "aria-hidden": "true" }, labeled ? keys.slice(...view.columns).map((token) =>
      h("span", {}, h("bdi", {}, shown(token)))) : null);
    const side = h("div", { class: "rows", "aria-hidden": "true" }, labeled ? queries.slice(...view.rows).map((token) =>
      h("span", {}, h("bdi", {}, shown(token)))) : null);
    const size = `${Math.min(13, Math.max(8, cell * 0.8))}px`;
    frame.replaceChildren(h("div", { class: `map-grid${labeled ? "" : " bare"}`, style: { "--size": size } }, h("i", {}), top, side,
      h("div", { class: "map-box" }, canvas)), tools(), about);
    mark(canvas);
  }

  function mark(canvas) {
    const [row, column] = chosen;
    canvas.parentElement.querySelectorAll(".mark").forEach((each) => each.remove());
    if (row < view.rows[0] || row >= view.rows[1]) return;
    const across = (value, [start, end]) => `${(100 * (value - start)) / (end - start)}%`;
    const both = column >= view.columns[0] && column < view.columns[1];
    canvas.parentElement.append(h("span", { class: "mark", style: { top: across(row, view.rows),
      height: across(view.rows[0] + 1, view.rows), left: both ? across(column, view.columns) : "0%",
      width: both ? across(view.columns[0] + 1, view.columns) : "100%" } }));
  }

  function tools() {
    const isWhole = view.rows[1] - view.rows[0] === queries.length && view.columns[1] - view.columns[0] === keys.length;
    const where = isWhole ? `all ${queries.length} × ${keys.length} tokens` : `tokens ${view.rows[0]}–${view.rows[1] - 1} × ${view.columns[0]}–${view.columns[1] - 1}`;
    return h("div", { class: "tools" },
      h("button", { type: "button", "data-focus": "zoom in", onclick: () => zoom(0.5), "aria-label": "Zoom in" }, "+"),
      h("button", { type: "button", "data-focus": "zoom out", onclick: () => zoom(2), disabled: isWhole, "aria-label": "Zoom out" }, "−"),
      h("button", { type: "button", onclick: () => show(null, null), disabled: isWhole }, "Whole"),
      h("span", { class: "faint small" }, `${where}, darkest ${number(darkest * weights.factor)}`));
  }

  function part([start, end], center, factor, count) {
    const size = Math.max(4, Math.min(count, Math.round((end - start) * factor)));
    const from = Math.max(0, Math.min(count - size, Math.round(center - size / 2)));
    return [from, from + size];
  }

  function zoom(factor) {
    const rows = part(view.rows, cursor[0], factor, queries.length);
    const columns = part(view.columns, cursor[1], factor, keys.length);
    const whole = rows[1] - rows[0] === queries.length && columns[1] - columns[0] === keys.length;
    return show(whole ? null : rows, whole ? null : columns);
  }

  function attach(canvas, height, width) {
    const at = (event) => {
      const box = canvas.getBoundingClientRect();
      const row = Math.min(height - 1, Math.max(0, Math.floor(((event.clientY - box.top) / box.height) * height)));
      const column = Math.min(width - 1, Math.max(0, Math.floor(((event.clientX - box.left) / box.width) * width)));
      return [view.rows[0] + row, view.columns[0] + column];
    };
    let from = null;
    canvas.addEventListener("pointermove", (event) => read(...at(event)));
    canvas.addEventListener("pointerdown", (event) => { from = at(event); });
    canvas.addEventListener("pointerup", (event) => {
      const to = at(event);
      if (!from) return;
      const [low, high] = [0, 1].map((side) => [Math.min(from[side], to[side]), Math.max(from[side], to[side]) + 1]);
      from = null;
      if (low[1] - low[0] > 3 && high[1] - high[0] > 3) show(low, high);
      else choose(...to);
    });
    canvas.addEventListener("keydown", (event) => {
      const moves = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[event.key];
      if (moves) {
        const row = Math.max(0, Math.min(queries.length - 1, cursor[0] + moves[0]));
        const column = Math.max(0, Math.min(keys.length - 1, cursor[1] + moves[1]));
        const text = read(row, column);
        if (text) say(text);
      } else if (event.key === "Enter" || event.key === " ") choose(...cursor);
      else if (event.key === "+" || event.key === "=") zoom(0.5);
      else if (event.key === "-") zoom(2);
      else return;
      event.preventDefault();
    });
  }

  draw();
  onColorChange(() => frame.isConnected && draw());
  return frame;
}
