/** Who asked what of the run, from where, and whether it has heard. */
import { html } from "../../vendor/preact-htm.js";
import { moment } from "../format.js";
import { Command, Empty, Said } from "../parts.js";
import { Badge } from "../symbols.js";

/** @type {Record<string, string>} */
const ORIGINS = { cli: "a terminal", web: "ralph web", watch: "ralph watch", mcp: "a program" };
const HEARD = { shape: "tick", tone: "good", word: "heard" };
const PENDING = { shape: "clock", tone: "warn", word: "pending" };

/** @param {{recap: any}} props */
export function Signals({ recap }) {
  if (!recap.steered.length) {
    return html`<${Empty} title="Nobody has asked anything of this run.">
      <p>Notes, pauses and stops stand here, from this page and from terminals:</p>
      <p><${Command} text=${`ralph note ${recap.run} "what the agent should know"`} /></p><//>`;
  }
  return html`
    <div class="card scroll" tabindex="0" role="region" aria-label="Signals">
      <table class="table">
        <thead><tr><th scope="col">When</th><th scope="col">What</th><th scope="col">From</th><th scope="col">Words</th>
          <th scope="col">State</th></tr></thead>
        <tbody>${recap.steered.map((/** @type {any} */ one) => html`
          <tr><td><time datetime=${new Date(one.time * 1000).toISOString()}>${moment(one.time)}</time></td>
            <th scope="row">${one.request.replace("-", " ")}${one.task && html` <code>${one.task}</code>`}</th>
            <td>${ORIGINS[one.origin] || one.origin}</td>
            <td><${Said} text=${one.text} /></td>
            <td><${Badge} look=${one.heard ? HEARD : PENDING} /></td></tr>`)}</tbody>
      </table>
    </div>`;
}
