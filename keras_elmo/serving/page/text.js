/** Tokens and numbers for people. */

const graphemes = new Intl.Segmenter(undefined, { granularity: "grapheme" });

export const graphemesOf = (text) => Array.from(graphemes.segment(text), ({ segment }) => segment);

/** A token as it is shown: what has no ink by its code points, what is long with its end cut off between graphemes. */
export function shown(token, size = 24) {
  if (/^[\p{C}\p{Z}\p{M}]+$/u.test(token)) {
    const points = Array.from(token, (point) => point.codePointAt(0).toString(16).toUpperCase());
    return points.map((point) => `U+${point.padStart(4, "0")}`).join(" ");
  }
  const parts = graphemesOf(token);
  return parts.length <= size ? token : `${parts.slice(0, size - 1).join("")}…`;
}

/** A word of several tokens: spaces between them where its script has spaces. */
export const joined = (tokens) =>
  tokens.reduce((text, token) => {
    const close = /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}]$/u.test(text);
    return text + (text && !close ? " " : "") + token;
  }, "");

/** Without lone halves of surrogate pairs, which are no text. */
export const wellFormed = (text) => text.replace(/\p{Surrogate}/gu, "");

export const decimal = (number, digits = 3) => number.toFixed(digits).replace(/^-(0\.0*)$/, "$1");

export const percent = (share) => `${(100 * share).toFixed(share >= 0.1 || share === 0 ? 0 : share >= 0.001 ? 1 : 3)} %`;
