// Colours: a colour-blind-safe set (Okabe and Ito 2008), and a sequential scale (viridis).

export const colours = {
  /** A colour of the style sheet in the current scheme, light or dark. @type {(name: string) => string} */
  of(name) {
    return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
  },

  get dark() {
    return matchMedia("(prefers-color-scheme: dark)").matches;
  },

  /** The colour of the n-th series, in CSS. @type {(number: number) => string} */
  series(number) {
    return colours.of(`series-${(number % 8) + 1}`);
  },

  /** Red, green and blue of "#rrggbb". @type {(text: string) => Colour} */
  rgb(text) {
    return [1, 3, 5].map((at) => parseInt(text.slice(at, at + 2), 16));
  },

  /** Red, green and blue for a share from 0 (close to the background) to 1 (far from it). @type {(share: number) => Colour} */
  scale(share) {
    const stops = ["#fde725", "#b5de2b", "#6ece58", "#35b779", "#1f9e89", "#26828e", "#31688e", "#3e4989", "#482878", "#440154"];
    const place = Math.min(1, Math.max(0, colours.dark ? 1 - share : share)) * (stops.length - 1);
    const low = Math.floor(place), high = Math.min(low + 1, stops.length - 1);
    const one = colours.rgb(stops[low]), other = colours.rgb(stops[high]);
    return one.map((part, at) => Math.round(part + (place - low) * (other[at] - part)));
  },

  /** Black or white, whichever can be read on a colour (relative luminance, WCAG 2). @type {(rgb: Colour) => string} */
  on(rgb) {
    const [red, green, blue] = rgb.map((part) => (part / 255 <= 0.04045 ? part / 255 / 12.92 : ((part / 255 + 0.055) / 1.055) ** 2.4));
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue > 0.179 ? "#000000" : "#ffffff";
  },
};
