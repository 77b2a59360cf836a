/** A word is its characters: the chosen one spelled, and words that nobody has seen beside it, by layer 0 alone. */

import { element, heatCell, isolated } from "./dom.js";
import { decimal, graphemesOf, shown, wellFormed } from "./text.js";
import { cosine } from "./vectors.js";

const MOST_WORDS = 20;
const utf8 = new TextEncoder();

export class Characters {
  constructor(section, onTyped) {
    this.section = section;
    this.field = section.querySelector("input");
    this.error = section.querySelector(".error");
    this.field.addEventListener("input", onTyped);
  }

  /** The words in the field, each once. */
  get words() {
    const words = wellFormed(this.field.value).split(/\s+/u).filter(Boolean);
    return [...new Set(words)].slice(0, MOST_WORDS);
  }

  /** `chosen`: name, tokens and layer 0 of a word; `vectors`: layer 0 of `words`; `sentences`: number, tokens, layer 0. */
  render(chosen, words, vectors, sentences, maxBytes) {
    this.section.querySelector(".spelling").replaceChildren(...spelled(chosen, maxBytes));
    this.section.querySelector(".to").replaceChildren("To ", isolated(shown(chosen.name)));
    const rows = words
      .map((word, k) => ({ word, vector: vectors[k], similarity: cosine(vectors[k], chosen.vector) }))
      .sort((a, b) => b.similarity - a.similarity)
      .map(({ word, vector, similarity }) => {
        const near = nearest(vector, sentences);
        return element(
          "tr", {},
          element("th", { scope: "row" }, isolated(shown(word))),
          heatCell(similarity, decimal(similarity)),
          element("td", {}, isolated(shown(near.token)), element("span", { class: "quiet" }, ` ${decimal(near.similarity)}`)),
        );
      });
    this.section.querySelector("tbody").replaceChildren(...rows);
  }
}

function nearest(vector, sentences) {
  let best = { similarity: -2 };
  for (const { tokens, vectors } of sentences) {
    tokens.forEach((token, place) => {
      const similarity = cosine(vector, vectors[place]);
      if (similarity > best.similarity) best = { token, similarity };
    });
  }
  return best;
}

/** A word's characters in boxes, and how many bytes the model reads. */
function spelled({ name, tokens }, maxBytes) {
  const word = tokens.join("");
  const boxes = graphemesOf(word).slice(0, 80).map((part) => isolated(shown(part), { class: "grapheme" }));
  const bytes = tokens.map((token) => utf8.encode(token).length);
  const total = bytes.reduce((a, b) => a + b, 0);
  const cut = maxBytes !== null && bytes.some((size) => size > maxBytes);
  const note = ` ${total} ${total === 1 ? "byte" : "bytes"} of UTF-8` + (cut ? `; the model reads the first ${maxBytes} of a word.` : ".");
  return ["What layer 0 sees of ", isolated(shown(name)), ": ", ...boxes, note];
}
