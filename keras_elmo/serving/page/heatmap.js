/** Token against token of two sentences: a picture that also holds 500 words, and a table of its numbers. */

import { element, heat, heatCell, inkOn, isolated } from "./dom.js";
import { decimal, shown } from "./text.js";
import { cosines } from "./vectors.js";

// Of the table: more cells would make the page slow.
const TABLE_SIZE = 24;

export class HeatMap {
  constructor(section, onChange) {
    this.section = section;
    this.canvas = section.querySelector("canvas");
    this.scroll = section.querySelector(".scroll");
    this.under = section.querySelector(".under-pointer");
    this.selects = [section.querySelector(".rows"), section.querySelector(".columns")];
    this.details = section.querySelector("details");
    for (const select of this.selects) select.addEventListener("change", onChange);
    this.details.addEventListener("toggle", () => this.#renderTable());
    for (const event of ["pointermove", "pointerdown"]) {
      this.canvas.addEventListener(event, ({ offsetX, offsetY }) => this.#tell(offsetX, offsetY));
    }
    this.canvas.addEventListener("pointerleave", () => (this.under.textContent = ""));
  }

  /** `sentences`: `number`, `tokens`, chosen `word` and, of the layer that is looked at, `vectors` of all tokens. */
  render(sentences, layerTitle) {
    this.selects.forEach((select, k) => this.#offer(select, sentences, Math.min(k, sentences.length - 1)));
    [this.rows, this.columns] = this.selects.map((select) =>
      sentences.find(({ number }) => String(number) === select.value),
    );
    if (!this.rows || !this.columns) return;
    this.values = cosines(this.rows.vectors, this.columns.vectors);
    this.layerTitle = layerTitle;
    this.#draw();
    this.#renderTable();
  }

  #offer(select, sentences, fallback) {
    const numbers = sentences.map(({ number }) => String(number));
    if (Array.from(select.options, (option) => option.value).join() === numbers.join()) return;
    const before = numbers.includes(select.value) ? select.value : numbers[fallback];
    select.replaceChildren(...numbers.map((number) => element("option", { value: number }, `Sentence ${number}`)));
    select.value = before ?? "";
  }

  #draw() {
    const { rows, columns, values, canvas } = this;
    const most = Math.max(rows.tokens.length, columns.tokens.length);
    const [size, font] = most <= 16 ? [44, 13] : most <= 40 ? [26, 13] : most <= 120 ? [14, 11] : [5, 0];
    const context = canvas.getContext("2d");
    const { color, fontFamily } = getComputedStyle(this.section);
    context.font = `${font}px ${fontFamily}`;
    const texts = [rows, columns].map(({ tokens }) => tokens.map((token) => (font ? shown(token, 14) : "")));
    const [left, top] = texts.map((labels) => Math.ceil(Math.max(0, ...labels.map((label) => context.measureText(label).width)) + 8));
    const width = left + size * columns.tokens.length;
    const height = top + size * rows.tokens.length;
    // The largest pictures have a pixel for each of the page's, or they would take too much memory.
    const scale = width * height > 4e6 ? 1 : window.devicePixelRatio || 1;
    canvas.width = Math.round(width * scale);
    canvas.height = Math.round(height * scale);
    canvas.style.inlineSize = `${width}px`;
    canvas.style.blockSize = `${height}px`;
    this.cells = { left, top, size };
    const stops = Array.from({ length: 11 }, (_, k) => `rgb(${heat(k / 10)})`);
    this.section.querySelector(".ramp").style.background = `linear-gradient(to right, ${stops})`;
    context.scale(scale, scale);
    context.textBaseline = "middle";
    // One pixel for each pair, enlarged: 250,000 of them are drawn at once.
    context.imageSmoothingEnabled = false;
    context.drawImage(pixels(values), left, top, width - left, height - top);
    if (size >= 40) this.#number(context, `12px ${fontFamily}`);
    context.fillStyle = color;
    if (font) this.#label(context, texts, `${font}px ${fontFamily}`);
    this.#frame(context, color);
    canvas.setAttribute(
      "aria-label",
      `Heat map of ${this.layerTitle}: ${rows.tokens.length} words of sentence ${rows.number} against ` +
        `${columns.tokens.length} of sentence ${columns.number}. Its numbers are in the table below.`,
    );
  }

  #number(context, font) {
    const { left, top, size } = this.cells;
    context.font = font;
    context.textAlign = "center";
    this.values.forEach((row, i) =>
      row.forEach((value, j) => {
        context.fillStyle = inkOn(heat(value));
        context.fillText(decimal(value, 2), left + (j + 0.5) * size, top + (i + 0.5) * size);
      }),
    );
  }

  #label(context, [ofRows, ofColumns], font) {
    const { left, top, size } = this.cells;
    const bold = (sentence, place) => place >= (sentence.word?.[0] ?? -1) && place < (sentence.word?.[1] ?? -1);
    context.textAlign = "right";
    ofRows.forEach((label, i) => {
      context.font = (bold(this.rows, i) ? "bold " : "") + font;
      context.fillText(label, left - 5, top + (i + 0.5) * size);
    });
    // Short ones, as Chinese characters are, stand upright.
    const upright = ofColumns.every((label) => context.measureText(label).width <= size - 6);
    context.textAlign = upright ? "center" : "left";
    ofColumns.forEach((label, j) => {
      context.save();
      context.translate(left + (j + 0.5) * size, top - (upright ? 14 : 5));
      if (!upright) context.rotate(-Math.PI / 2);
      context.font = (bold(this.columns, j) ? "bold " : "") + font;
      context.fillText(label, 0, 0);
      context.restore();
    });
  }

  /** Where the chosen words meet. */
  #frame(context, color) {
    const { left, top, size } = this.cells;
    if (!this.rows.word || !this.columns.word) return;
    const [[fromRow, toRow], [fromColumn, toColumn]] = [this.rows.word, this.columns.word];
    context.strokeStyle = color;
    context.lineWidth = size > 8 ? 2.5 : 1.5;
    context.strokeRect(left + fromColumn * size - 1, top + fromRow * size - 1, (toColumn - fromColumn) * size + 1, (toRow - fromRow) * size + 1);
  }

  #tell(x, y) {
    const { left, top, size } = this.cells;
    const [i, j] = [Math.floor((y - top) / size), Math.floor((x - left) / size)];
    const value = this.values[i]?.[j];
    if (value === undefined) return this.under.replaceChildren();
    this.under.replaceChildren(
      isolated(shown(this.rows.tokens[i])), " ~ ", isolated(shown(this.columns.tokens[j])), ` ${decimal(value)}`,
    );
  }

  #renderTable() {
    if (!this.details.open || !this.values) return;
    const [places, across] = [this.rows, this.columns].map(shownPlaces);
    const isWhole = places.length === this.rows.tokens.length && across.length === this.columns.tokens.length;
    this.details.querySelector("p").textContent =
      `Cosine similarity in ${this.layerTitle}.` +
      (isWhole ? "" : ` The table has the ${TABLE_SIZE} words around each chosen one: choose another to see others.`);
    const name = (sentence, place) => isolated(shown(sentence.tokens[place]));
    const head = element("tr", {}, element("td"), ...across.map((j) => element("th", { scope: "col" }, name(this.columns, j))));
    const rows = places.map((i) => {
      const cells = across.map((j) => heatCell(this.values[i][j], decimal(this.values[i][j], 2)));
      return element("tr", {}, element("th", { scope: "row" }, name(this.rows, i)), ...cells);
    });
    this.details.querySelector("table").replaceChildren(element("thead", {}, head), element("tbody", {}, ...rows));
  }
}

/** A picture with a pixel for each number. */
function pixels(values) {
  const made = new OffscreenCanvas(values[0].length, values.length);
  const context = made.getContext("2d");
  const image = context.createImageData(made.width, made.height);
  const colors = Array.from({ length: 256 }, (_, k) => heat(k / 255));
  values.forEach((row, i) =>
    row.forEach((value, j) => {
      const color = colors[Math.round(255 * Math.min(1, Math.max(0, value)))];
      image.data.set([...color, 255], 4 * (i * made.width + j));
    }),
  );
  context.putImageData(image, 0, 0);
  return made;
}

/** The places of a sentence that the table shows. */
function shownPlaces({ tokens, word }) {
  const middle = word?.[0] ?? 0;
  const first = Math.max(0, Math.min(middle - TABLE_SIZE / 2, tokens.length - TABLE_SIZE));
  return tokens.map((_, place) => place).slice(first, first + TABLE_SIZE);
}
