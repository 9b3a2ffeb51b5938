// Requests to the server of the page, or to the data inside a page that was written to a file. Each answer is kept.

import { state } from "./store.js";

const written = document.getElementById("embedded");
const embedded = written ? JSON.parse(written.textContent) : null;
const answers = new Map();
const KEPT = 200;

export const isFile = embedded !== null;

function canonical(value) {
  if (Array.isArray(value)) return `[${value.map(canonical).join(",")}]`;
  if (value && typeof value === "object") {
    const names = Object.keys(value).filter((name) => value[name] !== null && value[name] !== undefined && value[name] !== "").sort();
    return `{${names.map((name) => `${JSON.stringify(name)}:${canonical(value[name])}`).join(",")}}`;
  }
  return JSON.stringify(value);
}

async function fetched(path, body) {
  let response;
  try {
    response = await fetch(`view/${path}`, { method: "POST", body, headers: { "Content-Type": "application/json" } });
  } catch {
    throw new Error("The program behind this page has stopped. Start it again: regard look MODEL.");
  }
  const values = await response.json().catch(() => ({ error: `The server answered with status ${response.status}.` }));
  if (!response.ok || values.error) throw new Error(values.error || `The server answered with status ${response.status}.`);
  return values;
}

export function request(path, values = {}) {
  const body = canonical(values);
  const key = `${path} ${body}`;
  if (embedded) {
    const answer = embedded[key];
    if (answer && answer.error) return Promise.reject(new Error(answer.error));
    if (answer) return Promise.resolve(answer);
    return Promise.reject(new Error("This file holds a part of the page, and this is not in it. Run regard look MODEL to see everything."));
  }
  if (!answers.has(key)) {
    const promise = fetched(path, body);
    promise.catch(() => answers.delete(key));
    answers.set(key, promise);
    if (answers.size > KEPT) answers.delete(answers.keys().next().value);
  }
  return answers.get(key);
}

// The same without keeping the answer: for work that goes on.
export const fresh = (path, values = {}) => (embedded ? request(path, values) : fetched(path, canonical(values)));

// The text that is looked at, as every request names it.
export const input = (more = {}) => ({ text: state.text, pair: state.pair, target: state.target,
  window: state.window || null, ...more });

// The numbers of an array in base64: 8 or 16 bits each, times a factor.
export function unpack(array) {
  const bytes = Uint8Array.from(atob(array.data), (letter) => letter.charCodeAt(0));
  const numbers = array.kind === "uint8" ? bytes : new Uint16Array(bytes.buffer);
  return { numbers, factor: array.max / (array.kind === "uint8" ? 255 : 65535), shape: array.shape, max: array.max };
}
