/** How alike the chosen words are: a row for each pair of sentences, a column for each layer and the mix. */

import { element, heatCell, isolated } from "./dom.js";
import { decimal } from "./text.js";
import { cosine } from "./vectors.js";

/** `words`: for each sentence its `number`, its chosen word's `name` and a vector for each layer and the mix. */
export function renderSimilarity(section, words, layerTitles, notes) {
  const pairs = words.flatMap((first, k) => words.slice(k + 1).map((second) => ({ first, second })));
  for (const pair of pairs) {
    pair.similarities = pair.first.vectors.map((vector, layer) => cosine(vector, pair.second.vectors[layer]));
  }
  const heads = layerTitles.map((title, layer) =>
    element("th", { scope: "col" }, title, " ", element("span", { class: "quiet" }, notes[layer] ?? "")),
  );
  section.querySelector("thead").replaceChildren(element("tr", {}, element("th", { scope: "col" }, "Pair"), ...heads));
  const rows = pairs.map(({ first, second, similarities }) => {
    const names = first.name === second.name ? [isolated(first.name)] : [isolated(first.name), " ~ ", isolated(second.name)];
    const head = element("th", { scope: "row" }, `${first.number} ~ ${second.number} `, element("span", { class: "quiet" }, ...names));
    return element("tr", {}, head, ...similarities.map((value) => heatCell(value, decimal(value))));
  });
  section.querySelector("tbody").replaceChildren(...rows);
  const summary = summarize(pairs, layerTitles);
  section.querySelector(".summary").textContent = summary;
  return summary;
}

/** One or two sentences that say what the table shows. */
function summarize(pairs, layerTitles) {
  if (!pairs.length) return "Type a second sentence to compare with.";
  const top = layerTitles.length - 2;
  const same = pairs.filter(({ first, second }) => first.name === second.name);
  const said = [];
  const isolate = (name) => `“\u2068${name}\u2069”`;
  if (same.length) {
    const lowest = Math.min(...same.map(({ similarities }) => similarities[0]));
    said.push(`In layer 0 ${isolate(same[0].first.name)} is the same vector everywhere (${decimal(lowest)}).`);
  } else {
    said.push("These are different words, so that layer 0 compares their spelling.");
  }
  const ordered = [...pairs].sort((a, b) => b.similarities[top] - a.similarities[top]);
  const told = ({ first, second, similarities }) =>
    `${first.number} and ${second.number} (${decimal(similarities[top])})`;
  said.push(
    pairs.length === 1
      ? `In layer ${top}, which has read the sentences, the similarity is ${decimal(pairs[0].similarities[top])}.`
      : `In layer ${top}, which has read the sentences, the nearest are ${told(ordered[0])}, the farthest ${told(ordered.at(-1))}.`,
  );
  return said.join(" ");
}
