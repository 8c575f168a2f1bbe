/** The workers' lanes: which task each had, and from when to when. */
import { html } from "../../vendor/preact-htm.js";
import { clock, duration, lastPart } from "../format.js";
import { Empty } from "../parts.js";
import { address } from "../router.js";
import { Symbol } from "../symbols.js";

/** @type {Record<string, [string, string]>} tone and shape by outcome */
const OUTCOMES = { "": ["accent", "play"], done: ["good", "tick"], parked: ["warn", "down"] };

/** @param {{recap: any}} props */
export function Workers({ recap }) {
  const { lanes } = recap;
  if (!lanes.length) return html`<${Empty} title="No worker has begun yet." />`;
  const began = Math.min(...lanes.map((/** @type {any} */ lane) => lane.began));
  const ended = Math.max(...lanes.map((/** @type {any} */ lane) => lane.ended ?? recap.now));
  const span = Math.max(ended - began, 0.001);
  return html`
    <div class="card lanes">
      <div class="lane-axis soft" aria-hidden="true"><span>${clock(began)}</span><span>${duration(span)}</span>
        <span>${clock(ended)}</span></div>
      <ul>${rowsOf(lanes).map((row, at) => html`<li class="lane" key=${at}>
        ${row.map((lane) => html`<${Bar} key=${lane.worker} lane=${lane} run=${recap.run} now=${recap.now}
          began=${began} span=${span} />`)}
      </li>`)}</ul>
    </div>`;
}

/** The workers that are at work now: each has a log of its own. @param {{recap: any}} props */
export function AtWork({ recap }) {
  const lanes = recap.lanes.filter((/** @type {any} */ lane) => lane.ended === null);
  if (!lanes.length) return null;
  return html`<p class="at-work soft">Each worker has a log of its own:
    ${lanes.map((/** @type {any} */ lane) => html`<a key=${lane.worker} class="chip"
      href=${address("run", recap.run, "worker", lane.worker, "log")}><${Symbol} shape="play" /><bdi>${lane.task}</bdi></a>`)}</p>`;
}

/** @param {{lane: any, run: string, now: number, began: number, span: number}} props */
function Bar({ lane, run, now, began, span }) {
  const [tone, shape] = OUTCOMES[lane.outcome] || ["bad", "cross"];
  const seconds = (lane.ended ?? now) - lane.began;
  const place = { left: `${((lane.began - began) / span) * 100}%`, width: `${Math.max((seconds / span) * 100, 0.5)}%` };
  const words = `${lane.task}: ${lane.outcome || "at work"}, ${duration(seconds)}`;
  return html`<a class=${`lane-bar tone-${tone}`} style=${place} data-step title=${words} aria-label=${words}
    href=${address("run", run, "worker", lane.worker)}>
    <${Symbol} shape=${shape} /><bdi>${lane.task || lastPart(lane.worker)}</bdi></a>`;
}

/** Lanes that do not overlap share a row, as few rows as there were workers at once. @param {any[]} lanes */
function rowsOf(lanes) {
  /** @type {any[][]} */
  const rows = [];
  for (const lane of [...lanes].sort((one, other) => one.began - other.began)) {
    const free = rows.find((row) => (row[row.length - 1].ended ?? Infinity) <= lane.began);
    if (free) free.push(lane);
    else rows.push([lane]);
  }
  return rows;
}
