/** The backlog as a board: a column for each state. */
import { html } from "../../vendor/preact-htm.js";
import { duration, money, plural } from "../format.js";
import { Said } from "../parts.js";
import { address } from "../router.js";
import { Answer } from "../steer.js";
import { COLUMNS, Symbol } from "../symbols.js";

const MOST = 60; // cards in a column

/** @param {{me: any, recap: any, route: import("../router.js").Route}} props */
export function Board({ me, recap, route }) {
  const run = route.lead || recap.run;
  const columns = Object.entries(COLUMNS).map(([state, look]) => ({
    state,
    look,
    tasks: recap.tasks.filter((/** @type {any} */ task) => task.state === state),
  }));
  const shown = columns.filter(({ state, tasks }) => tasks.length || ["pending", "in_progress", "done"].includes(state));
  return html`
    <div class="board" tabindex="0" role="region" aria-label="Board of tasks">
      ${shown.map(({ state, look, tasks }) => html`
        <section class=${`column tone-${look.tone}`} key=${state} aria-labelledby=${`column-${state}`}>
          <h2 id=${`column-${state}`}><${Symbol} shape=${look.shape} />${look.word}<b>${tasks.length}</b></h2>
          <ul>${tasks.slice(0, MOST).map((/** @type {any} */ task) => html`
            <${Card} key=${task.id} me=${me} run=${run} task=${task} />`)}</ul>
          ${tasks.length > MOST && html`<p class="soft">and ${tasks.length - MOST} more</p>`}
          ${!tasks.length && html`<p class="soft column-empty">nothing</p>`}
        </section>`)}
    </div>`;
}

/** @param {{me: any, run: string, task: any}} props */
function Card({ me, run, task }) {
  const worked = task.iterations > 0;
  return html`
    <li class="task card" tabindex="0" data-step>
      <p class="task-title"><code>${task.id}</code> <${Said} text=${task.title} /></p>
      ${task.why && !task.question && html`<p class="task-why"><${Said} text=${task.why} /></p>`}
      ${task.question && html`<${Answer} me=${me} run=${run} task=${task.id} title="" question=${task.question} />`}
      ${worked && html`<p class="task-facts soft">
        <span>${plural(task.iterations, "iteration")}</span>
        <span>${duration(task.seconds)}</span>
        ${task.cost_usd !== null && html`<span>${money(task.cost_usd)}</span>`}
        ${task.files > 0 && html`<span><span class="tone-good">+${task.added}</span> <span class="tone-bad">−${task.removed}</span></span>`}
        ${task.commit && html`<code>${task.commit.slice(0, 8)}</code>`}
        ${task.worker && html`<a href=${address("run", run, "worker", task.worker)}>worker</a>`}
      </p>`}
      ${task.evidence.length > 0 && html`<details><summary>Evidence</summary>
        <ul class="plain-list">${task.evidence.map((/** @type {string} */ line) => html`<li><${Said} text=${line} /></li>`)}</ul>
      </details>`}
    </li>`;
}
