/** All iterations in one row: a cell for each, by its verdict. */
import { html } from "../../vendor/preact-htm.js";
import { duration, plural } from "../format.js";
import { inRun } from "../router.js";
import { AT_WORK, Symbol, verdictLook } from "../symbols.js";

const MOST = 150;

/** @param {{recap: any, route: import("../router.js").Route}} props */
export function Strip({ recap, route }) {
  const shown = recap.iterations.slice(-MOST);
  if (!shown.length) return null;
  /** @type {Map<string, any>} */
  const kinds = new Map();
  for (const one of shown) {
    const look = verdictLook(one);
    kinds.set(look.word, { look, count: (kinds.get(look.word)?.count || 0) + 1 });
  }
  const words = [...kinds].map(([word, { count }]) => `${count} ${word}`).join(", ");
  return html`
    <figure class="strip">
      <div class="strip-cells" role="img" aria-label=${`${plural(shown.length, "iteration")}: ${words}`}>
        ${shown.map((/** @type {any} */ one) => {
          const look = verdictLook(one);
          const open = () => (location.hash = inRun(route, "iterations", one.number, ...(one.worker ? [one.worker] : [])));
          const seconds = one.agent_seconds + one.gate_seconds;
          return html`<span class=${`cell tone-${look.tone} ${look === AT_WORK ? "is-now" : ""}`} onClick=${open}
            title=${`${one.number}${one.task ? ` · ${one.task}` : ""} · ${look.word} · ${duration(seconds)}`}>
            <${Symbol} shape=${look.shape} /></span>`;
        })}
      </div>
      <figcaption aria-hidden="true">${[...kinds.values()].map(({ look, count }) => html`
        <span class=${`tone-${look.tone}`}><${Symbol} shape=${look.shape} />${count} ${look.word}</span>`)}</figcaption>
    </figure>`;
}
