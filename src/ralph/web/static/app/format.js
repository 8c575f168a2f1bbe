/** Numbers and times as people read them. */

/** @param {number | null | undefined} dollars */
export function money(dollars) {
  if (dollars === null || dollars === undefined) return "–";
  if (dollars > 0 && dollars < 0.01) return "<$0.01";
  return `$${dollars.toFixed(dollars < 1000 ? 2 : 0)}`;
}

/** @param {number} count */
export function count(count) {
  if (count < 1000) return String(count);
  if (count < 999_500) return `${short(count / 1000)}k`;
  return `${short(count / 1_000_000)}M`;
}

/** @param {number} number */
const short = (number) => (number < 10 ? number.toFixed(1) : number.toFixed(0)).replace(/\.0$/, "");

/** As Python's `ralph.text.words` has it: both stand on one page. @param {number} seconds */
export function duration(seconds) {
  if (seconds < 9.95) return `${Math.max(0, seconds).toFixed(1)}s`;
  const whole = Math.round(seconds);
  if (whole < 60) return `${whole}s`;
  const [size, large, small] = whole < 3600 ? [60, "m", "s"] : [3600, "h", "m"];
  const rest = Math.floor((whole % size) / (size / 60));
  return `${Math.floor(whole / size)}${large}${rest ? `${rest}${small}` : ""}`;
}

/** How long ago. @param {number} seconds */
export function age(seconds) {
  if (seconds < 5) return "now";
  if (seconds < 60) return `${Math.floor(seconds)}s ago`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)}m ago`;
  if (seconds < 86_400) return `${Math.floor(seconds / 3600)}h ago`;
  return `${Math.floor(seconds / 86_400)}d ago`;
}

/** @param {number} time in seconds */
export function clock(time) {
  const date = new Date(time * 1000);
  return `${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}`;
}

/** @param {number} time in seconds */
export const moment = (time) =>
  new Date(time * 1000).toLocaleString(undefined, { dateStyle: "medium", timeStyle: "short" });

/** @param {number} number */
const two = (number) => String(Math.floor(number)).padStart(2, "0");

/** @param {number} number @param {string} one @param {string} [many] */
export const plural = (number, one, many = `${one}s`) => `${number} ${number === 1 ? one : many}`;

/** The work of a run, in a line. @param {any} run */
export const askedOf = (run) => run.asked || "Nobody knows what it was to do";

/** The last part of a path. @param {string} path */
export const lastPart = (path) => path.replace(/\/+$/, "").split("/").pop() || path;
