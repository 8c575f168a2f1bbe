/** Keys, and the sheet that tells them. */
import { html, useEffect, useRef } from "../vendor/preact-htm.js";

/** @typedef {Record<string, () => void>} Keys */

/** @type {Keys[]} the page's, then those of its parts: the last that knows a key has it */
const known = [];

const SHEET = [
  ["j  k", "the next, the one before"],
  ["Enter", "open it"],
  ["/", "search or filter"],
  ["n  N", "the next match, the one before"],
  ["f", "follow the log, or stop following"],
  ["1 … 6", "the parts of a run"],
  ["u", "up: to the run, to the list"],
  ["Esc", "leave a field, close this sheet"],
  ["?", "this sheet"],
];

/** Answer to these keys while this part is shown. @param {Keys} keys */
export function useKeys(keys) {
  const current = useRef(keys);
  current.current = keys;
  useEffect(() => {
    /** @type {Keys} */
    const mine = new Proxy({}, { get: (_, key) => current.current[String(key)] });
    known.push(mine);
    return () => known.splice(known.indexOf(mine), 1);
  }, []);
}

/** @param {KeyboardEvent} event */
export function pressed(event) {
  const target = /** @type {HTMLElement} */ (event.target);
  const writes = target.matches("input, textarea, select");
  if (event.key === "Escape" && writes) return target.blur();
  if (writes || event.ctrlKey || event.metaKey || event.altKey) return;
  if (document.querySelector("dialog[open]")) return;
  for (const keys of [...known].reverse()) {
    const act = keys[event.key];
    if (!act) continue;
    event.preventDefault();
    return act();
  }
}

/** Move the focus among the elements that are marked for it. @param {number} by */
export function step(by) {
  const all = [...document.querySelectorAll("[data-step]")];
  if (!all.length) return;
  const at = all.findIndex((one) => one.contains(document.activeElement));
  const next = at < 0 ? (by > 0 ? 0 : all.length - 1) : Math.max(0, Math.min(at + by, all.length - 1));
  const found = /** @type {HTMLElement} */ (all[next]);
  found.focus();
  found.scrollIntoView({ block: "nearest" });
}

/** Put the cursor into the page's search field. */
export function search() {
  /** @type {HTMLInputElement | null} */ (document.querySelector("input[type=search]"))?.focus();
}

/** @param {{open: boolean, close: () => void}} props */
export function Sheet({ open, close }) {
  const box = useRef(/** @type {HTMLDialogElement | null} */ (null));
  useEffect(() => {
    if (open && !box.current?.open) box.current?.showModal();
  }, [open]);
  if (!open) return null;
  return html`
    <dialog ref=${box} class="sheet" aria-labelledby="sheet-title" onClose=${close}>
      <h2 id="sheet-title">Keys</h2>
      <dl>${SHEET.map(([keys, words]) => html`
        <div><dt>${keys.split("  ").map((key) => html`<kbd>${key}</kbd> `)}</dt><dd>${words}</dd></div>`)}
      </dl>
      <button type="button" class="button" onClick=${() => box.current?.close()}>Close</button>
    </dialog>`;
}
