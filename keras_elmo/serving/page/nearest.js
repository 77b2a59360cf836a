/** The words of all sentences that are nearest to each chosen word, in one layer. */

import { bar, element, isolated } from "./dom.js";
import { decimal, joined, shown } from "./text.js";
import { cosine } from "./vectors.js";

const MOST = 6;
const AROUND = 2;

/** `sentences`: as for the heat map, with the chosen word's `name` and its vector `chosen`. */
export function renderNearest(section, sentences, layerTitle) {
  section.querySelector("p").textContent = `In ${layerTitle}; the layer is that of the map above.`;
  const lists = sentences
    .filter(({ word }) => word)
    .map((sentence) => {
      const found = nearest(sentence, sentences).slice(0, MOST);
      return column(sentence.number, isolated(sentence.name), found.map(({ other, place, similarity }) => [
        [context(other, place), element("span", { class: "quiet" }, ` in ${other.number}`)], similarity, decimal(similarity),
      ]));
    });
  section.querySelector(".columns").replaceChildren(...lists);
}

/** The number of a sentence, what of it is meant and, below, a list of words with a number and a bar each. */
export function column(number, meant, entries) {
  const items = entries.map(([what, share, text]) =>
    element("li", {}, element("span", { class: "what" }, ...what), element("span", { class: "number" }, text), bar(share)),
  );
  return element("div", {}, element("h3", {}, `${number} `, meant), element("ol", { class: "bars" }, ...items));
}

/** What is around a token, and a gap where it stands. */
export const gap = (tokens, place) =>
  context({ tokens }, place, element("span", { class: "gap", role: "img", "aria-label": "gap" }));

function nearest(sentence, sentences) {
  const [start, end] = sentence.word;
  return sentences
    .flatMap((other) =>
      other.tokens.map((_, place) => ({ other, place, similarity: cosine(sentence.chosen, other.vectors[place]) })),
    )
    .filter(({ other, place }) => other !== sentence || place < start || place >= end)
    .sort((a, b) => b.similarity - a.similarity);
}

/** A token with those around it, or something else in its place. */
function context({ tokens }, place, inside = element("b", {}, shown(tokens[place]))) {
  const text = (from, to) => joined(tokens.slice(Math.max(from, 0), to).map((token) => shown(token, 12)));
  const [before, after] = [text(place - AROUND, place), text(place + 1, place + 1 + AROUND)];
  const quiet = (words) => element("span", { class: "quiet" }, words);
  return element("bdi", {}, quiet(before && `${before} `), inside, quiet(after && ` ${after}`));
}
