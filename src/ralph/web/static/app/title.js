/** The title and the icon of the browser's tab, which tell how things are. */
import { lookOf } from "./symbols.js";

/** @type {Record<string, string>} */
const ICONS = { accent: "running", ask: "asking", bad: "bad", good: "good", warn: "waiting", quiet: "quiet" };

/** @param {string} words @param {string} [state] */
export function showState(words, state = "") {
  const look = lookOf(state);
  document.title = state ? `${look.word} · ${words} · Ralph` : `${words} · Ralph`;
  const icon = /** @type {HTMLLinkElement} */ (document.getElementById("icon"));
  const address = `/static/icons/${ICONS[look.tone]}.svg`;
  if (icon.getAttribute("href") !== address) icon.setAttribute("href", address);
}
