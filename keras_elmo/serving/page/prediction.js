/** What a classifier, a tagger or another head says of each sentence. */

import { bar, element, isolated } from "./dom.js";
import { decimal, percent, shown } from "./text.js";

const MOST = 8;

/** `answers`: for each its `title` and `outputs`, by name. */
export function renderPrediction(section, answers) {
  const blocks = answers.map(({ title, outputs }) => element("div", {}, element("h3", {}, title), body(outputs)));
  section.querySelector(".body").replaceChildren(...blocks);
  return answers.map(({ title, outputs }) => `${title}: ${said(outputs)}`).join("; ");
}

function body(outputs) {
  if (Array.isArray(outputs.label) && Array.isArray(outputs.tokens)) return tagged(outputs);
  if (Array.isArray(outputs.labels) && Array.isArray(outputs.probabilities)) return labelled(outputs);
  const entries = Object.entries(outputs).flatMap(([name, value]) => [
    element("dt", {}, name), element("dd", {}, isolated(text(value))),
  ]);
  return element("dl", {}, ...entries);
}

/** All labels with their probabilities, the likeliest first. */
function labelled({ labels, probabilities }) {
  const order = labels.map((_, k) => k).sort((a, b) => probabilities[b] - probabilities[a]);
  const items = order.slice(0, MOST).map((k) =>
    element(
      "li", {},
      element("span", { class: "what" }, isolated(labels[k])),
      element("span", { class: "number" }, percent(probabilities[k])),
      bar(probabilities[k]),
    ),
  );
  return element("ol", { class: "bars" }, ...items);
}

/** The tokens with the label of each below; `O` is none. */
function tagged({ tokens, label }) {
  const items = tokens
    .map((token, place) => [token, label[place]])
    .filter(([token]) => token !== "")
    .map(([token, name]) =>
      element("li", { class: name === "O" ? "outside" : "inside" }, isolated(shown(token)), element("span", {}, name)),
    );
  return element("ul", { class: "tagged", dir: "auto" }, ...items);
}

function said({ label, labels, tokens, ...others }) {
  if (Array.isArray(label)) {
    return tokens.flatMap((token, k) => (token && label[k] !== "O" ? [`${token} ${label[k]}`] : [])).join(", ") || "no label";
  }
  return label ?? Object.entries(others).map(([name, value]) => `${name} ${text(value)}`).join(", ");
}

function text(value) {
  if (typeof value === "string") return value || "none";
  if (typeof value === "number") return Number.isInteger(value) ? String(value) : decimal(value);
  return shown(JSON.stringify(value), 200);
}
