// Work over a data set: a button, a bar with the time that is left, and the result when it is there.

import { fresh, isFile, request } from "./api.js";
import { h, notice } from "./dom.js";

const EVERY = 700;

function left(seconds) {
  if (seconds === null || seconds === undefined) return "";
  return seconds >= 90 ? `about ${Math.round(seconds / 60)} minutes left` : `about ${Math.max(1, Math.round(seconds))} seconds left`;
}

// `show(result)` returns the elements of the result.
export async function jobBox({ name, label, page, show }) {
  const box = h("div", { class: "job", "data-job": name });
  if (!page.data) {
    box.append(notice("This needs labeled data. Start the page with a file: "), h("pre", {}, `regard look ${page.models[0].name} --data FILE`));
    return box;
  }
  if (isFile) {
    const kept = await request("job", { name }).catch(() => null);
    if (kept?.result) box.append(...show(kept.result));
    else box.append(notice(`This file does not hold it. Run regard look ${page.models[0].name} --data FILE.`));
    return box;
  }
  const update = async (values) => {
    if (values.state === "new") {
      box.replaceChildren(h("button", { type: "button", class: "go", "data-focus": `job ${name}`, onclick: async () => update(await fresh("job", { name, action: "start" })) }, label),
        h("span", { class: "faint small" }, ` on ${page.data}`));
    } else if (values.state === "running") {
      const done = values.total ? values.done / values.total : 0;
      box.replaceChildren(h("div", { class: "progress", role: "progressbar", "aria-valuenow": values.done, "aria-valuemax": values.total || 1, "aria-label": label }, h("span", { style: { width: `${100 * done}%` } })),
        h("div", { class: "tools" }, h("span", { class: "faint small" }, [`${values.done} of ${values.total ?? "…"}`, left(values.seconds_left)].filter(Boolean).join(", ")),
          h("button", { type: "button", onclick: async () => update(await fresh("job", { name, action: "stop" })) }, "Stop")));
      setTimeout(async () => {
        if (box.isConnected) update(await fresh("job", { name }));
      }, EVERY);
    } else if (values.error) {
      box.replaceChildren(notice(values.error, "error"), h("button", { type: "button", class: "plain", onclick: async () => update(await fresh("job", { name, action: "start" })) }, "Again"));
    } else {
      box.replaceChildren(...show(values.result));
      box.dataset.done = "true";
    }
  };
  const values = await fresh("job", { name });
  if (values.state === "running") setTimeout(() => update(values), 0);
  else await update(values);
  return box;
}
