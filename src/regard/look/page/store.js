// What is selected, once for all views. It is the hash of the address: a copied link restores the view.

const NUMBERS = new Set(["layer", "token", "key", "window", "model", "edit"]);
const LISTS = new Set(["heads"]);
const listeners = new Set();
export const defaults = { view: "heads", mode: "lines", text: "", pair: "", target: "", part: "", layer: 0, heads: [],
  token: -1, key: -1, window: 0, change: "",
  changed: "", edit: -1, off: "", skipped: "", aim: "", word: "", sentences: "", at: "" };
export const state = { ...defaults };

function parse(hash) {
  const values = {};
  for (const [name, value] of new URLSearchParams(hash.replace(/^#/, ""))) {
    if (NUMBERS.has(name)) values[name] = Number.parseInt(value, 10) || 0;
    else if (LISTS.has(name)) values[name] = value.split(".").filter(Boolean).map((each) => Number.parseInt(each, 10) || 0);
    else values[name] = value;
  }
  return values;
}

function format() {
  const fields = new URLSearchParams();
  for (const [name, value] of Object.entries(state)) {
    const written = Array.isArray(value) ? value.join(".") : String(value ?? "");
    const normal = Array.isArray(defaults[name]) ? defaults[name].join(".") : String(defaults[name] ?? "");
    if (written !== normal) fields.set(name, written);
  }
  return `#${fields}`;
}

export const subscribe = (listener) => listeners.add(listener);
const publish = (changed) => listeners.forEach((listener) => listener(changed));

export function set(values) {
  const changed = Object.keys(values).filter((name) => String(state[name]) !== String(values[name]));
  if (!changed.length) return;
  Object.assign(state, values);
  try {
    history.replaceState(null, "", format());
  } catch {
    // a page inside a notebook has no address of its own
  }
  publish(new Set(changed));
}

export function restore(first) {
  Object.assign(defaults, first);
  Object.assign(state, defaults, parse(location.hash));
  window.addEventListener("hashchange", () => {
    Object.assign(state, defaults, parse(location.hash));
    publish(new Set(Object.keys(state)));
  });
}
