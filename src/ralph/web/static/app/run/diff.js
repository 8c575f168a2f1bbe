/** What was changed: the files, and the patch with a sign and a tone for each line. */
import { html } from "../../vendor/preact-htm.js";
import { plural } from "../format.js";
import { Said } from "../parts.js";

/** @param {{diff: any}} props */
export function Diff({ diff }) {
  if (!diff.files.length) return null;
  return html`
    <section class="part" aria-label="Changes">
      <h3>What it changed <small>${plural(diff.files.length, "file")}</small></h3>
      <ul class="files">${diff.files.map((/** @type {any} */ file) => html`
        <li><${Said} text=${file.path} of="code" />
          ${file.added === null
            ? html`<span class="soft">binary</span>`
            : html`<span class="tone-good">+${file.added}</span> <span class="tone-bad">−${file.removed}</span>`}</li>`)}
      </ul>
      ${diff.patch && html`<details open=${diff.patch.length < 4000}><summary>The patch</summary>
        <pre class="patch sunk" tabindex="0">${diff.patch.split("\n").map((/** @type {string} */ line) =>
          html`<span class=${`said ${kindOf(line)}`}>${line}${"\n"}</span>`)}</pre>
        ${diff.is_cut && html`<p class="soft">The rest is left out.</p>`}</details>`}
    </section>`;
}

/** @param {string} line */
function kindOf(line) {
  if (line.startsWith("diff ") || line.startsWith("+++") || line.startsWith("---") || line.startsWith("index ")) return "is-head";
  if (line.startsWith("@@")) return "is-place";
  return line.startsWith("+") ? "is-added" : line.startsWith("-") ? "is-removed" : "";
}
