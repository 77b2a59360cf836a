/** Sliders for the layers' weights and gamma; moving one mixes anew at once. */

import { element } from "./dom.js";
import { decimal, percent } from "./text.js";
import { distance, norm, softmax } from "./vectors.js";

const MAX_WEIGHT = 5;

export class Mixer {
  constructor(section, onChange) {
    this.section = section;
    this.onChange = onChange;
    section.querySelector(".reset").addEventListener("click", () => this.setLayers(this.weights.length));
  }

  /** Sliders for so many layers, all at the start: equal shares and gamma 1, as a new model has them. */
  setLayers(count) {
    this.weights = Array(count).fill(0);
    this.gamma = 1;
    this.outputs = [];
    const slider = (title, min, max, step, value, set) => {
      const output = element("span", { class: "value", "aria-hidden": "true" });
      this.outputs.push(output);
      const range = element("input", {
        type: "range", min, max, step, value, "aria-label": title,
        oninput: () => {
          set(Number(range.value));
          this.#changed();
        },
      });
      return element("label", {}, element("span", {}, title), range, output);
    };
    const ofLayers = this.weights.map((_, layer) =>
      slider(`Layer ${layer} weight`, -MAX_WEIGHT, MAX_WEIGHT, 0.1, 0, (value) => (this.weights[layer] = value)),
    );
    const ofGamma = slider("Gamma", 0.1, 3, 0.1, 1, (value) => (this.gamma = value));
    this.section.querySelector(".sliders").replaceChildren(...ofLayers, ofGamma);
    this.#changed();
  }

  #changed() {
    const shares = softmax(this.weights);
    const ranges = this.section.querySelectorAll("input");
    this.weights.forEach((weight, layer) => {
      const text = `${decimal(weight, 1)}: ${percent(shares[layer])}`;
      this.outputs[layer].textContent = text;
      ranges[layer].setAttribute("aria-valuetext", text.replace(":", ", a share of"));
    });
    this.outputs.at(-1).textContent = decimal(this.gamma, 1);
    this.onChange();
  }

  /** `words`: as in the table of similarities; the last vector of each is the mix. */
  renderLengths(words) {
    const mixes = words.map(({ vectors }) => vectors.at(-1));
    const lengths = words.map(({ number }, k) => `${number}: ${decimal(norm(mixes[k]), 2)}`);
    const text = [`Length of the mixed vectors ${lengths.join(", ")}.`];
    if (mixes.length > 1) {
      const [first, second] = words;
      text.push(`Distance of ${first.number} and ${second.number}: ${decimal(distance(mixes[0], mixes[1]), 2)}.`);
    }
    this.section.querySelector(".lengths").textContent = words.length ? text.join(" ") : "";
  }
}
