/** Sentence: what was typed, the model's answer to it, and the word that is chosen in it. */

import { wellFormed } from "./text.js";

let made = 0;

export class Sentence {
  /** `wanted`: tokens to choose once they are known, where `word` does not say the place. */
  constructor(text = "", word = null, wanted = []) {
    this.id = ++made;
    this.text = text;
    this.wanted = wanted;
    /** The answer to `asked`: tokens and whatever the model gives; `null` before the first one. */
    this.answer = null;
    this.asked = null;
    this.error = "";
    /** Places of the chosen word's first token and the one behind its last; `null` as long as nothing is chosen. */
    this.word = word;
    this.controller = null;
  }

  get isEmpty() {
    return !wellFormed(this.text).trim();
  }

  /** Whether the answer is that to what stands there now. */
  get isCurrent() {
    return this.isEmpty || this.asked === this.text;
  }

  get tokens() {
    return this.answer?.tokens ?? [];
  }

  get chosen() {
    return this.word ? this.tokens.slice(...this.word) : [];
  }

  choose(start, end) {
    const size = this.tokens.length;
    const first = Math.min(Math.max(start, 0), size - 1);
    this.word = size ? [first, Math.min(Math.max(end, first + 1), size)] : null;
  }

  forget() {
    this.controller?.abort();
    this.answer = this.asked = null;
    this.error = "";
  }

  /** Asks for what stands there now; an answer that comes after the text has changed is dropped. */
  async ask(model) {
    this.controller?.abort();
    if (this.isEmpty) {
      this.forget();
      this.word = null;
      return;
    }
    const { text } = this;
    const controller = (this.controller = new AbortController());
    const late = () => controller.signal.aborted || text !== this.text;
    try {
      const answer = await model.read(wellFormed(text), controller.signal, this);
      if (late()) return;
      const before = this.chosen;
      Object.assign(this, { answer, asked: text, error: "" });
      this.#chooseAgain(before);
    } catch (error) {
      if (!late()) throw error;
    }
  }

  /** Where the chosen word has gone in the new text; `null` if it is not there any more. */
  #chooseAgain(before) {
    if (before.length) this.word = this.find(before, this.word[0]);
    else if (this.word) this.choose(...this.word);
    else if (this.wanted.length) this.word = this.find(this.wanted);
  }

  /** The places of tokens in this sentence, those nearest to a place; `null` if they are not in it. */
  find(tokens, near = 0) {
    let found = null;
    for (let start = 0; start + tokens.length <= this.tokens.length; start++) {
      const is = tokens.every((token, k) => this.tokens[start + k] === token);
      if (is && (!found || Math.abs(start - near) < Math.abs(found[0] - near))) {
        found = [start, start + tokens.length];
      }
    }
    return found;
  }
}

/** Chooses a word where none is chosen: that of another sentence, or the longest one. */
export function chooseMissing(sentences) {
  const wanted = sentences.filter((sentence) => sentence.chosen.length).map((sentence) => sentence.chosen);
  for (const sentence of sentences.filter(({ tokens, chosen }) => tokens.length && !chosen.length)) {
    const shared = wanted.map((word) => sentence.find(word)).find(Boolean);
    const lengths = sentence.tokens.map((token) => (/\p{L}/u.test(token) ? token.length : 0));
    const longest = lengths.indexOf(Math.max(...lengths));
    sentence.word = shared ?? [longest, longest + 1];
  }
}
