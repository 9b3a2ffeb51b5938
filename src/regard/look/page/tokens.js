// Tokens as buttons: choose with a click or the arrow keys. Long words are cut for the eye, whole for a reader.

import { h } from "./dom.js";

const LONGEST = 24;

export function shown(token) {
  const text = token.text === "" ? token.token : token.text;
  const visible = text.replace(/\s/g, (space) => (space === "\n" ? "⏎" : "␣")) || "∅";
  return visible.length > LONGEST ? `${Array.from(visible).slice(0, LONGEST - 1).join("")}…` : visible;
}

export const isSpecial = (token) => token.sequence === undefined || token.sequence === null;

export function label(token, place) {
  const text = token.text.length > 200 ? `${token.text.slice(0, 200)}…` : token.text;
  return `token ${place}: ${text}${token.token !== token.text && token.token.length < 60 ? ` (${token.token})` : ""}`;
}

// A list of tokens; `choose(place)` on click, `over(place)` when the pointer or the focus is on one.
export function tokenList(name, tokens, { chosen = -1, choose, over, style, vertical = false, more } = {}) {
  const list = h("div", { class: `tokens${vertical ? " vertical" : ""}`, role: "listbox", "aria-label": name,
    "aria-orientation": vertical ? "vertical" : "horizontal" });
  tokens.forEach((token, place) => {
    const button = h("button", { type: "button", role: "option", class: `token${isSpecial(token) ? " special" : ""}`,
      "aria-selected": String(place === chosen), "aria-label": label(token, place), title: label(token, place),
      tabindex: place === Math.max(0, chosen) ? "0" : "-1", "data-place": place, "data-focus": `${name} ${place}`,
      dir: "auto", style: style ? style(place) : null }, shown(token), more ? more(place) : null);
    list.append(button);
  });
  const place = (event) => {
    const button = event.target.closest(".token");
    return button ? Number(button.dataset.place) : null;
  };
  list.addEventListener("click", (event) => {
    const at = place(event);
    if (at !== null && choose) choose(at);
  });
  if (over) {
    list.addEventListener("pointerover", (event) => over(place(event)));
    list.addEventListener("pointerleave", () => over(null));
  }
  list.addEventListener("keydown", (event) => {
    const step = { ArrowDown: 1, ArrowRight: 1, ArrowUp: -1, ArrowLeft: -1 }[event.key];
    const at = place(event);
    if (at === null) return;
    let next = null;
    if (step) next = at + step;
    else if (event.key === "Home") next = 0;
    else if (event.key === "End") next = tokens.length - 1;
    if (next === null || next < 0 || next >= tokens.length) return;
    event.preventDefault();
    list.children[at].tabIndex = -1;
    list.children[next].tabIndex = 0;
    list.children[next].focus();
    if (over) over(next);
  });
  return list;
}
