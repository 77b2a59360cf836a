/** All that is shown of an embedding model: similarities, mix, map, nearest words, substitutes, characters. */

import { Characters } from "./characters.js";
import { element } from "./dom.js";
import { HeatMap } from "./heatmap.js";
import { Mixer } from "./mixer.js";
import { column, gap, renderNearest } from "./nearest.js";
import { renderSimilarity } from "./similarity.js";
import { joined, percent, shown } from "./text.js";
import { mean, mix } from "./vectors.js";

const MAX_SUBSTITUTES = 8;
const PAUSE = 200;

const byId = (id) => document.getElementById(id);

export class VectorViews {
  /** `page` has `later`, `attempt` and `say` of the page. */
  constructor(page) {
    this.page = page;
    this.map = new HeatMap(byId("map"), () => this.#renderLayer());
    this.characters = new Characters(byId("characters"), () =>
      page.later(this.characters, PAUSE, () => this.#renderCharacters()),
    );
    this.sentences = [];
  }

  setModel(model) {
    this.model = model;
    this.sentences = [];
    if (!model.hasVectors) return;
    const top = model.layers.length - 1;
    this.titles = [...model.layers.map((_, layer) => `Layer ${layer}`), "Mix"];
    this.notes = { 0: "char\u00ADacters only", [top]: "top", [top + 1]: "yours" };
    this.layer = top;
    const choices = ["0", ...model.layers.slice(1).map((_, k) => String(k + 1)), "mix"].map((name, layer) => {
      const radio = element("input", {
        type: "radio", name: "layer", value: layer,
        onchange: () => {
          this.layer = layer;
          this.#renderLayer();
        },
      });
      radio.checked = layer === this.layer;
      return element("label", { class: "token" }, radio, element("span", {}, name));
    });
    const fieldset = byId("map").querySelector(".layers");
    fieldset.replaceChildren(fieldset.firstElementChild, ...choices);
    this.mixer ??= new Mixer(byId("mixer"), () => this.#remix());
    this.mixer.setLayers(model.layers.length);
  }

  setInvented(words) {
    this.characters.field.value = words;
  }

  /** `answered`: pairs of a sentence that has an answer and its number; `settled`: whether no other is awaited. */
  render(answered, settled) {
    this.answered = answered.filter(({ sentence }) => sentence.tokens.length);
    for (const id of ["similarity", "mixer", "map", "nearest"]) byId(id).hidden = !this.answered.length;
    byId("similarity").classList.toggle("stale", !settled);
    if (!this.answered.length) {
      byId("substitutes").hidden = byId("characters").hidden = true;
      return;
    }
    this.#remix(settled);
    if (!settled) return;
    if (this.model.hasSubstitutes) this.page.later("substitutes", PAUSE, () => this.#renderSubstitutes());
    if (this.model.readsWords) this.page.later(this.characters, PAUSE, () => this.#renderCharacters());
  }

  /** Everything that the mix is part of; no question to the server. */
  #remix(spoken = false) {
    const { weights, gamma } = this.mixer;
    this.sentences = (this.answered ?? []).map(({ sentence, number }) => ({
      number,
      tokens: sentence.tokens,
      word: sentence.word,
      name: joined(sentence.chosen.map((token) => shown(token))),
      layers: [...sentence.answer.layers, mix(sentence.answer.layers, weights, gamma)],
    }));
    if (!this.sentences.length) return;
    const words = this.sentences.map(({ number, name, word, layers }) => ({
      number,
      name,
      vectors: layers.map((vectors) => mean(vectors.slice(...word))),
    }));
    const summary = renderSimilarity(byId("similarity"), words, this.titles, this.notes);
    if (spoken) this.page.say(summary);
    this.mixer.renderLengths(words);
    if (spoken || this.layer === this.model.layers.length) this.#renderLayer();
  }

  /** What shows one layer. */
  #renderLayer() {
    const sentences = this.sentences.map((sentence) => {
      const vectors = sentence.layers[this.layer];
      return { ...sentence, vectors, chosen: mean(vectors.slice(...sentence.word)) };
    });
    const title = this.titles[this.layer].toLowerCase();
    this.map.render(sentences, title);
    renderNearest(byId("nearest"), sentences, title);
  }

  async #renderSubstitutes() {
    const section = byId("substitutes");
    const { sentences } = this;
    await this.page.attempt(
      async () => {
        const found = [];
        for (const { tokens, word } of sentences) found.push(await this.model.substitutes(tokens, word[0]));
        if (sentences !== this.sentences && !sameWords(sentences, this.sentences)) return;
        const columns = sentences.map(({ number, tokens, word }, k) => {
          const [[, most]] = found[k];
          const entries = found[k].slice(0, MAX_SUBSTITUTES).map(([text, share]) => [
            [element("bdi", {}, shown(text))], share / most, percent(share),
          ]);
          return column(number, gap(tokens, word[0]), entries);
        });
        section.querySelector(".columns").replaceChildren(...columns);
        section.hidden = false;
      },
      (message) => {
        section.querySelector(".columns").textContent = `The model refused this: ${message}`;
        section.hidden = false;
      },
    );
  }

  async #renderCharacters() {
    const section = byId("characters");
    if (!this.sentences.length) return;
    const { words, error } = this.characters;
    await this.page.attempt(
      async () => {
        const vectors = words.length ? await this.model.words(words) : [];
        if (!this.sentences.length || words.join(" ") !== this.characters.words.join(" ")) return;
        const [first] = this.sentences;
        const chosen = {
          name: first.name,
          tokens: first.tokens.slice(...first.word),
          vector: mean(first.layers[0].slice(...first.word)),
        };
        const sentences = this.sentences.map(({ tokens, layers }) => ({ tokens, vectors: layers[0] }));
        this.characters.render(chosen, words, vectors, sentences, this.model.maxWordBytes);
        error.hidden = true;
        section.hidden = false;
      },
      (message) => {
        error.textContent = `The model refused these words: ${message}`;
        error.hidden = section.hidden = false;
      },
    );
  }
}

/** Whether the same words of the same sentences are chosen. */
function sameWords(some, others) {
  const key = (sentences) => JSON.stringify(sentences.map(({ tokens, word }) => [tokens, word]));
  return key(some) === key(others);
}
