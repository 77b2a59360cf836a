/** Elements in one line each. */

/** An element with properties (`class`, `aria-..`, `on..` among them) and children: elements and strings. */
export function element(name, properties = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(properties)) {
    if (value === undefined || value === false) continue;
    if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
    else made.setAttribute(key, value === true ? "" : value);
  }
  made.append(...children);
  return made;
}

/** Text whose direction is its own, whatever stands around it. */
export const isolated = (text, properties = {}) => element("bdi", properties, text);

/** A number in a cell of a table, coloured by its size. */
export function heatCell(value, text, properties = {}) {
  const cell = element("td", { class: "number", ...properties }, text);
  const rgb = heat(value);
  cell.style.backgroundColor = `rgb(${rgb})`;
  cell.style.color = inkOn(rgb);
  return cell;
}

/** A bar beside a number that it repeats. */
export function bar(share) {
  const made = element("span", { class: "bar", "aria-hidden": "true" }, element("span"));
  made.firstChild.style.inlineSize = `${100 * Math.min(1, Math.max(0, share))}%`;
  return made;
}

// From unrelated to the same: light to dark, or dark to light.
const RAMPS = {
  light: [[246, 248, 246], [150, 211, 200], [24, 118, 122], [5, 61, 70]],
  dark: [[27, 34, 38], [22, 84, 92], [56, 158, 152], [196, 242, 226]],
};
const isDark = matchMedia("(prefers-color-scheme: dark)");

export const onThemeChange = (listener) => isDark.addEventListener("change", listener);

/** The colour of a similarity: red, green and blue from 0 to 255. */
export function heat(similarity) {
  const ramp = RAMPS[isDark.matches ? "dark" : "light"];
  const place = Math.min(1, Math.max(0, similarity)) * (ramp.length - 1);
  const below = Math.min(Math.floor(place), ramp.length - 2);
  return ramp[below].map((from, k) => Math.round(from + (place - below) * (ramp[below + 1][k] - from)));
}

/** The ink that can be read on a colour. */
export const inkOn = (rgb) => (luminance(rgb) > 0.179 ? "#000" : "#fff");

/** As the contrast of WCAG takes it: above 0.179 black is the better ink. */
function luminance(rgb) {
  const [red, green, blue] = rgb.map((value) => {
    const part = value / 255;
    return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}

