// Elements without markup: text is always a text node, so that nothing in a text, a label or a token is ever executed.

const SVG = "http://www.w3.org/2000/svg";

function fill(element, properties, children) {
  for (const [name, value] of Object.entries(properties || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "style") for (const [key, each] of Object.entries(value)) element.style.setProperty(key, each);
    else if (name === "value" && "value" in element) element.value = value;
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  element.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

export const h = (tag, properties, ...children) => fill(document.createElement(tag), properties, children);
export const s = (tag, properties, ...children) => fill(document.createElementNS(SVG, tag), properties, children);

export function card(title, about, ...children) {
  const head = title ? h("h2", {}, title) : null;
  return h("section", { class: "card" }, head, about ? h("p", { class: "faint about" }, about) : null, ...children);
}

export const notice = (text, kind = "notice") => h("p", { class: kind, role: kind === "error" ? "alert" : null }, text);

export function say(text) {
  const status = document.getElementById("status");
  if (status.textContent !== text) status.textContent = text;
}

export function number(value, digits = 3) {
  if (value === null || value === undefined || Number.isNaN(value)) return "–";
  if (value === 0) return "0";
  const size = Math.abs(value);
  if (size >= 10000 || size < 0.0005) return value.toExponential(1).replace("-", "−").replace("e+", "e").replace("e−0", "e−");
  return value.toFixed(size >= 100 ? 1 : digits).replace("-", "−");
}

export function percent(value) {
  if (value > 0 && value < 0.0005) return "<0.1 %";
  return `${(100 * value).toFixed(value >= 0.9995 || value === 0 ? 0 : 1)} %`;
}

export function bar(value, largest, kind = "c0") {
  const width = largest > 0 ? Math.min(100, (100 * Math.abs(value)) / largest) : 0;
  return h("span", { class: `bar ${kind}` }, h("span", { style: { width: `${width}%` } }));
}

export function table(heads, rows, properties = {}) {
  return h("div", { class: "scroll" }, h("table", properties,
    h("thead", {}, h("tr", {}, heads.map((each) => h("th", { scope: "col", class: each === "" ? "wide-bar" : null }, each)))),
    h("tbody", {}, rows)));
}

export function select(label, options, value, change) {
  const field = h("select", { "aria-label": label, onchange: () => change(field.value), "data-focus": label },
    options.map(([key, shown]) => h("option", { value: key, selected: String(key) === String(value) }, shown)));
  return h("label", { class: "field" }, h("span", {}, label), field);
}

export function choices(label, options, value, change) {
  return h("div", { class: "choices", role: "group", "aria-label": label }, options.map(([key, shown, about]) =>
    h("button", { type: "button", "aria-pressed": String(String(key) === String(value)), title: about,
      "data-focus": `${label} ${key}`, onclick: () => change(key) }, shown)));
}
