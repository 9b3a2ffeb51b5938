// Vectors and matrices as colored cells: blue above zero, red below, with their numbers under the pointer.

import { h, number } from "./dom.js";
import { signed } from "./colors.js";

function parsed(color) {
  return color.slice(4, -1).split(",").map(Number);
}

// A matrix (list of rows) as a canvas; `names` are the names of the rows.
export function cells(rows, { label, names = null, height = 14, width = null }) {
  const columns = rows[0]?.length || 0;
  const largest = Math.max(1e-9, ...rows.map((row) => row.reduce((most, value) => Math.max(most, Math.abs(value)), 0)));
  const canvas = h("canvas", { class: "cells", role: "img", "aria-label": `${label}: ${rows.length > 1 ? `${rows.length} × ` : ""}${columns} numbers, the largest ${number(largest)}` });
  if (!canvas.getContext) return h("span", { class: "faint small" }, rows[0].slice(0, 6).map((value) => number(value)).join(", "));
  canvas.width = Math.max(1, columns);
  canvas.height = Math.max(1, rows.length);
  canvas.style.height = `${height * rows.length}px`;
  if (width) canvas.style.width = width;
  const context = canvas.getContext("2d");
  const image = context.createImageData(canvas.width, canvas.height);
  rows.forEach((row, y) => row.forEach((value, x) => {
    image.data.set([...parsed(signed(value / largest)), 255], 4 * (y * columns + x));
  }));
  context.putImageData(image, 0, 0);
  canvas.addEventListener("pointermove", (event) => {
    const box = canvas.getBoundingClientRect();
    const x = Math.min(columns - 1, Math.max(0, Math.floor(((event.clientX - box.left) / box.width) * columns)));
    const y = Math.min(rows.length - 1, Math.max(0, Math.floor(((event.clientY - box.top) / box.height) * rows.length)));
    canvas.title = `${names ? `${names[y]}, ` : ""}dimension ${x}: ${number(rows[y][x], 4)}`;
  });
  return canvas;
}

// One vector with its name, its shape and its first numbers.
export function vector(name, values, note = "") {
  const first = values.slice(0, 4).map((value) => value.toFixed(2).replace("-", "−")).join("  ");
  return h("div", { class: "vector", "data-name": name }, h("span", { class: "name" }, name, note ? h("span", { class: "faint" }, ` ${note}`) : null),
    cells([values], { label: name }), h("span", { class: "faint small numbers" }, `${first} … (${values.length})`));
}

export function matrix(name, rows, tokens) {
  return h("div", { class: "matrix", "data-name": name }, h("span", { class: "name" }, name, h("span", { class: "faint" }, ` (${rows.length} × ${rows[0].length})`)),
    h("div", { class: "matrix-body" }, h("div", { class: "matrix-rows", "aria-hidden": "true" }, tokens.map((token) => h("span", {}, h("bdi", {}, token)))),
      cells(rows, { label: name, names: tokens })));
}
