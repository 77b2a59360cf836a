/** Sentences and chosen words in the page's address, behind the #: a link or a reload brings them back. */

import { Sentence } from "./sentence.js";
import { wellFormed } from "./text.js";

/** The sentences of an address; `null` if it has none. */
export function readAddress(hash) {
  const parameters = new URLSearchParams(hash.replace(/^#/, ""));
  const texts = parameters.getAll("s");
  const words = parameters.getAll("w");
  if (!texts.length) return null;
  return texts.map((text, k) => {
    const match = /^(\d{1,6})-(\d{1,6})$/.exec(words[k] ?? "");
    return new Sentence(text, match ? [Number(match[1]), Number(match[2])] : null);
  });
}

export function writeAddress(sentences) {
  const parameters = new URLSearchParams();
  for (const { text, word } of sentences) {
    parameters.append("s", wellFormed(text));
    parameters.append("w", word ? word.join("-") : "");
  }
  return `#${parameters}`;
}
