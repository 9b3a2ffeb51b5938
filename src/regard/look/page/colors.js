// Colors of weights and heads, in the light and in the dark.

const dark = window.matchMedia("(prefers-color-scheme: dark)");
export const isDark = () => dark.matches;
export const onColorChange = (listener) => dark.addEventListener("change", listener);

const RAMPS = {
  light: [[255, 255, 255], [206, 222, 242], [120, 165, 214], [48, 103, 168], [14, 45, 92]],
  dark: [[26, 31, 40], [33, 62, 102], [58, 112, 178], [130, 182, 242], [238, 246, 255]],
};
const POLES = { light: { up: [46, 120, 180], down: [205, 84, 58], zero: [255, 255, 255] },
  dark: { up: [106, 170, 235], down: [240, 128, 104], zero: [26, 31, 40] } };
const MASKED = { light: [240, 241, 244], dark: [36, 41, 51] };
export const HEADS = ["#3b6ea8", "#d9822b", "#3f8f5b", "#c44e3b", "#8461b5", "#8c6239", "#d067a4", "#6d7684", "#a3a12c",
  "#2f9fb0", "#5566cc", "#b8556b"];

export const headColor = (head) => HEADS[head % HEADS.length];
const theme = () => (isDark() ? "dark" : "light");

// 256 colors from no weight to the largest; the root makes small weights visible.
export function ramp(gamma = 0.6) {
  const stops = RAMPS[theme()];
  const colors = new Uint8Array(256 * 3);
  for (let level = 0; level < 256; level += 1) {
    const place = (level / 255) ** gamma * (stops.length - 1);
    const low = Math.min(stops.length - 2, Math.floor(place));
    for (let part = 0; part < 3; part += 1) {
      colors[3 * level + part] = stops[low][part] + (place - low) * (stops[low + 1][part] - stops[low][part]);
    }
  }
  return colors;
}

export const masked = () => MASKED[theme()];

// The color of a number between −1 and 1: one hue above zero, another below.
export function signed(value) {
  const { up, down, zero } = POLES[theme()];
  const pole = value >= 0 ? up : down;
  const size = Math.min(1, Math.abs(value)) ** 0.7;
  return `rgb(${zero.map((each, part) => Math.round(each + size * (pole[part] - each))).join(",")})`;
}

export function shade(value) {
  const colors = ramp();
  const level = Math.max(0, Math.min(255, Math.round(value * 255)));
  return `rgb(${colors[3 * level]},${colors[3 * level + 1]},${colors[3 * level + 2]})`;
}

// Whether black text reads better than white text on a value of the ramp.
export const isStrong = (value) => value ** 0.6 > 0.55;
