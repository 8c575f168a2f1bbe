/** What was spent, day by day. */
import { html, useEffect, useState } from "../../vendor/preact-htm.js";
import { get } from "../api.js";
import { count, money, plural } from "../format.js";
import { Empty, Trouble } from "../parts.js";
import { showState } from "../title.js";

const RENEW = 60_000;

export function Spending() {
  const [spending, setSpending] = useState(/** @type {any} */ (null));
  const [error, setError] = useState(/** @type {any} */ (null));
  useEffect(() => {
    const load = () => get("/api/spending").then(setSpending, setError);
    showState("Spending");
    load();
    const timer = setInterval(load, RENEW);
    return () => clearInterval(timer);
  }, []);

  if (error) return html`<${Trouble} error=${error} />`;
  if (!spending) return null;
  const days = [...spending.days].sort((one, other) => (one.day < other.day ? 1 : -1));
  const most = Math.max(...days.map((day) => day.cost_usd), 0.01);
  return html`
    <div class="page-head"><h1>Spending</h1>
      <p class="soft">All runs of this machine that are still on disk: <b>${money(spending.total_usd)}</b></p></div>
    ${days.length === 0
      ? html`<${Empty} title="Nothing was spent yet."><p>What agents tell of their cost adds up here.</p><//>`
      : html`<div class="scroll card" tabindex="0" role="region" aria-label="Spending by day">
          <table class="table">
            <thead><tr><th scope="col">Day</th><th scope="col" class="wide">Cost</th>
              <th scope="col" class="number">Turns</th>
              <th scope="col" class="number">Tokens in</th><th scope="col" class="number">Tokens out</th></tr></thead>
            <tbody>${days.map((day) => html`<${Day} day=${day} most=${most} />`)}</tbody>
          </table>
        </div>`}`;
}

/** @param {{day: any, most: number}} props */
const Day = ({ day, most }) => html`
  <tr>
    <th scope="row"><time datetime=${day.day}>${dayWords(day.day)}</time></th>
    <td><div class="day-cost">
      <div class="bar tone-accent" aria-hidden="true"><i style=${{ width: `${(day.cost_usd / most) * 100}%` }} /></div>
      <b>${money(day.cost_usd)}</b></div>
      ${day.uncounted > 0 && html`<span class="soft">and ${plural(day.uncounted, "turn")} of unknown cost</span>`}
    </td>
    <td class="number">${day.turns}</td>
    <td class="number">${count(day.tokens_in)}</td>
    <td class="number">${count(day.tokens_out)}</td>
  </tr>`;

/** @param {string} day */
const dayWords = (day) =>
  new Date(`${day}T12:00:00`).toLocaleDateString(undefined, { weekday: "short", day: "numeric", month: "short" });
