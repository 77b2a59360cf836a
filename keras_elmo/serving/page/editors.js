/** The list of sentences: a field for each and, below it, its words to choose from. */

import { element, isolated } from "./dom.js";
import { joined, shown } from "./text.js";

export class Editors {
  /** `on` has the listeners `typed`, `chosen` and `removed`, each called with a sentence. */
  constructor(root, on) {
    this.root = root;
    this.on = on;
    this.parts = new Map();
  }

  /** Shows these sentences; whatever has the focus keeps it. */
  render(sentences, { names, choosing, extending, busy }) {
    for (const [sentence, parts] of this.parts) {
      if (!sentences.includes(sentence)) {
        parts.item.remove();
        this.parts.delete(sentence);
      }
    }
    sentences.forEach((sentence, k) => {
      if (!this.parts.has(sentence)) this.parts.set(sentence, this.#make(sentence));
      const parts = this.parts.get(sentence);
      if (this.root.children[k] !== parts.item) this.root.insertBefore(parts.item, this.root.children[k] ?? null);
      const name = names[k] ?? `Sentence ${k + 1}`;
      parts.label.textContent = name;
      parts.remove.setAttribute("aria-label", `Remove ${name.toLowerCase()}`);
      parts.remove.hidden = names.length > 0 || sentences.length <= 1;
      parts.error.textContent = sentence.error;
      parts.error.hidden = !sentence.error;
      parts.field.setAttribute("aria-invalid", sentence.error ? "true" : "false");
      parts.words.classList.toggle("stale", !sentence.isCurrent);
      parts.words.setAttribute("aria-busy", String(busy && !sentence.isCurrent));
      parts.legend.textContent = `Word of ${name.toLowerCase()}`;
      parts.words.hidden = !choosing || sentence.isEmpty || !sentence.answer;
      parts.chosen.hidden = !extending || parts.words.hidden;
      if (choosing) this.#renderWords(sentence, parts);
    });
  }

  focusLast() {
    [...this.parts.values()].at(-1)?.field.focus();
  }

  #make(sentence) {
    const id = `sentence-${sentence.id}`;
    const label = element("label", { for: id });
    const field = element("textarea", {
      id, dir: "auto", rows: "1", spellcheck: "false", "aria-describedby": `${id}-error`,
      oninput: () => {
        sentence.text = field.value;
        this.on.typed(sentence);
      },
    });
    field.value = sentence.text;
    const remove = element("button", { type: "button", class: "remove", onclick: () => this.on.removed(sentence) }, "×");
    const error = element("p", { id: `${id}-error`, class: "error", role: "alert", hidden: true });
    const legend = element("legend", { class: "visually-hidden" });
    const list = element("div", { class: "tokens", dir: "auto" });
    const words = element("fieldset", { class: "words", hidden: true }, legend, list);
    const name = isolated("");
    const change = (by) => () => {
      sentence.choose(sentence.word[0], sentence.word[1] + by);
      this.on.chosen(sentence);
    };
    const resize = (by, text, name) => element("button", { type: "button", "aria-label": name, onclick: change(by) }, text);
    const shorter = resize(-1, "− token", "One token less");
    const longer = resize(1, "+ token", "One token more");
    const chosen = element("p", { class: "chosen quiet", hidden: true }, "Chosen: ", name, " ", shorter, " ", longer);
    const item = element("li", {}, element("div", { class: "field" }, label, field, remove), error, words, chosen);
    return { item, label, field, remove, error, legend, list, words, chosen, name, shorter, longer, tokens: null };
  }

  #renderWords(sentence, parts) {
    const { tokens, word } = sentence;
    if (parts.tokens !== tokens) {
      parts.tokens = tokens;
      const group = `word-${sentence.id}`;
      const choice = (token, place) => {
        const radio = element("input", {
          type: "radio", name: group, value: place,
          onchange: () => {
            sentence.choose(place, place + 1);
            this.on.chosen(sentence);
          },
        });
        return element("label", { class: "token" }, radio, element("span", {}, shown(token, 60)));
      };
      parts.list.replaceChildren(...tokens.map(choice));
    }
    [...parts.list.children].forEach((label, place) => {
      label.firstChild.checked = place === word?.[0];
      label.classList.toggle("is-chosen", Boolean(word) && place >= word[0] && place < word[1]);
    });
    if (!word) return;
    parts.name.textContent = joined(sentence.chosen.map((token) => shown(token)));
    // Disabled, a button would lose the focus.
    parts.shorter.setAttribute("aria-disabled", String(word[1] - word[0] <= 1));
    parts.longer.setAttribute("aria-disabled", String(word[1] >= tokens.length));
  }
}
