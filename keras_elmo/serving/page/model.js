/** Model: what the served signatures can do, and how they are asked for it. */

import { predict, servedModel } from "./api.js";
import { layerNames, readSentence } from "./vectors.js";

const NEEDED = ["tokens", "word_emb", "lstm_outputs1"];

const isString = (info) => info.dtype === "DT_STRING" && info.tensor_shape.dim.length === 1;

export async function loadModel() {
  return new Model(await servedModel());
}

export class Model {
  constructor({ name, version, description, signatures }) {
    Object.assign(this, { name, version, description, signatures });
    this.signature = "default" in signatures ? "default" : "serving_default";
    const { inputs = {}, outputs = {} } = signatures[this.signature] ?? {};
    this.outputs = Object.keys(outputs);
    // In the order of the export, for those of a signature have none.
    const order = description.signatures?.[this.signature]?.inputs ?? [];
    this.inputs = Object.keys(inputs).sort((a, b) => order.indexOf(a) - order.indexOf(b));
    this.texts = this.inputs.filter((input) => isString(inputs[input]));
    this.takesPlace = this.inputs.includes("predicate");
    this.hasVectors = this.texts.length === 1 && NEEDED.every((output) => output in outputs);
    this.layers = this.hasVectors ? layerNames(outputs) : [];
    /** Vectors of words, but not all that it takes to compare them. */
    this.isPartial = !this.hasVectors && (this.outputs.includes("elmo") || this.outputs.includes("word_emb"));
    const takesTexts = this.texts.length > 0 && this.texts.length + this.takesPlace === this.inputs.length;
    this.isHead = takesTexts && !this.hasVectors && !this.isPartial;
    this.hasSubstitutes = this.hasVectors && "substitutes" in signatures;
    this.readsWords = this.hasVectors && "word_emb" in (signatures.tokens?.outputs ?? {});
    const dimensions = signatures.character_ids?.inputs.character_ids?.tensor_shape.dim;
    /** Bytes of a word that are read. */
    this.maxWordBytes = dimensions ? Number(dimensions[2].size) - 2 : null;
    this.memory = new Map();
  }

  /** What the page cannot do with the model, in one sentence; "" if it can. */
  get unfit() {
    if (this.hasVectors || this.isHead) return "";
    if (this.isPartial) {
      return (
        `The model ${this.name} serves ${this.outputs.join(", ")}, but comparing layers takes ${NEEDED.join(", ")}, …: ` +
        "export it without --outputs."
      );
    }
    return (
      `The page asks models that take plain strings, but ${this.name} takes ${this.inputs.join(", ") || "nothing"}: ` +
      "use its REST interface."
    );
  }

  /** The outputs for a sentence, the same question asked only once. */
  async read(text, signal, sentence) {
    if (this.hasVectors) {
      return this.#remembered(`text ${text}`, async () =>
        readSentence(await predict(this.name, this.signature, { [this.texts[0]]: text }, signal), this.layers),
      );
    }
    if (this.texts.length > 1) return { tokens: [] };
    const row = { [this.texts[0]]: text };
    if (this.takesPlace) row.predicate = sentence.word?.[0] ?? 0;
    const prediction = await this.predict(row, signal);
    return { tokens: (prediction.tokens ?? []).filter((token) => token !== ""), prediction };
  }

  /** A head's outputs by name. */
  async predict(row, signal) {
    const prediction = await predict(this.name, this.signature, row, signal);
    // A single output comes without its name.
    return this.outputs.length === 1 ? { [this.outputs[0]]: prediction } : prediction;
  }

  /** Layer 0 of words, whatever they are. */
  words(words, signal) {
    return this.#remembered(`words ${JSON.stringify(words)}`, async () => {
      const row = { tokens: words, sequence_len: words.length };
      const { word_emb: vectors } = await predict(this.name, "tokens", row, signal);
      return words.map((_, k) => Float32Array.from([...vectors[k], ...vectors[k]]));
    });
  }

  /** The likeliest words for a place of a sentence: pairs of word and probability. */
  substitutes(tokens, position, signal) {
    return this.#remembered(`substitutes ${position} ${JSON.stringify(tokens)}`, async () => {
      const row = { tokens, sequence_len: tokens.length, position };
      const found = await predict(this.name, "substitutes", row, signal);
      return found.words.map((word, k) => [word, Math.exp(found.log_probability[k])]);
    });
  }

  async #remembered(question, ask) {
    if (!this.memory.has(question)) {
      this.memory.set(question, await ask());
      // 500 words are a few megabytes.
      if (this.memory.size > 60) this.memory.delete(this.memory.keys().next().value);
    }
    return this.memory.get(question);
  }
}
