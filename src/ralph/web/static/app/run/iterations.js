/** The iterations of a run, newest first, each folded; what is inside is loaded when it is opened. */
import { html, useEffect, useRef, useState } from "../../vendor/preact-htm.js";
import { get, runPath } from "../api.js";
import { duration, money } from "../format.js";
import { Empty, Said, Trouble } from "../parts.js";
import { Badge, verdictLook } from "../symbols.js";
import { keyOf } from "./follow.js";
import { Inside } from "./iteration.js";

const AT_ONCE = 100;
const FILTERS = [
  ["", "all"],
  ["disbelieved", "claims not believed"],
  ["objections", "with objections"],
  ["trouble", "with trouble"],
];

/** @param {{recap: any, route: import("../router.js").Route}} props */
export function Iterations({ recap, route }) {
  const [most, setMost] = useState(AT_ONCE);
  const [filter, setFilter] = useState("");
  const wanted = route.tab === "iterations" && route.rest[0] ? `${route.rest[1] || ""}:${route.rest[0]}` : "";
  if (!recap.iterations.length) return html`<${Empty} title="No iteration has begun yet." />`;
  const all = [...recap.iterations].reverse();
  const matching = all.filter((one) => passes(one, filter));
  const at = matching.findIndex((one) => keyOf(one) === wanted);
  const shown = matching.slice(0, Math.max(most, at + 1));
  return html`
    <h2 class="out-of-sight">Iterations</h2>
    <div class="chips iteration-filters" role="group" aria-label="Show only">
      ${FILTERS.map(([name, word]) => {
        const count = all.filter((one) => passes(one, name)).length;
        return (count > 0 || !name) && html`<button class="chip" key=${name} aria-pressed=${filter === name}
          onClick=${() => setFilter(name)}>${word} <b>${count}</b></button>`;
      })}
    </div>
    <ol class="iterations" reversed>${shown.map((one) => html`
      <${Fold} key=${keyOf(one)} run=${recap.run} one=${one} opened=${keyOf(one) === wanted} />`)}</ol>
    ${matching.length > shown.length && html`<button class="button" onClick=${() => setMost(most + AT_ONCE)}>
      Show ${Math.min(AT_ONCE, matching.length - shown.length)} older</button>`}`;
}

/** @param {any} one @param {string} filter */
function passes(one, filter) {
  if (filter === "disbelieved") return one.judgement?.is_disbelieved;
  if (filter === "objections") return (one.judgement?.objections.length || 0) > 0;
  if (filter === "trouble") return one.trouble !== "";
  return true;
}

/** @param {{run: string, one: any, opened: boolean}} props */
function Fold({ run, one, opened }) {
  const [open, setOpen] = useState(opened);
  const place = useRef(/** @type {HTMLElement | null} */ (null));
  useEffect(() => {
    if (!opened) return;
    setOpen(true);
    place.current?.scrollIntoView({ block: "start" });
  }, [opened]);
  const look = verdictLook(one);
  return html`
    <li class=${`iteration card tone-${look.tone} ${one.judgement?.is_disbelieved ? "is-disbelieved" : ""}`} ref=${place}>
      <button type="button" class="iteration-head" aria-expanded=${open} data-step onClick=${() => setOpen(!open)}>
        <span class="iteration-number">${one.number}</span>
        <span class="iteration-what">
          <span class="iteration-line">
            <${Badge} look=${look} />
            ${one.task && html`<code>${one.task}</code>`}
            ${one.mode !== "implement" && html`<span class="badge tone-ask">${one.mode}</span>`}
            ${one.title && html`<${Said} text=${one.title} />`}
          </span>
          <${Why} one=${one} />
        </span>
        <${Split} one=${one} />
      </button>
      ${open && html`<${Loaded} run=${run} one=${one} />`}
    </li>`;
}

/** The claim, and what the host made of it. @param {{one: any}} props */
function Why({ one }) {
  const { judgement } = one;
  if (!judgement) return html`<span class="soft">${one.trouble || "The agent is at work."}</span>`;
  const objection = judgement.is_disbelieved && judgement.objections[0];
  return html`
    <span class="iteration-why">
      ${judgement.is_disbelieved && html`<span class="claim">it claimed <q class="said">${judgement.claims[0]}</q></span>`}
      <${Said} text=${objection || one.trouble || judgement.words} kind="iteration-words" />
    </span>`;
}

/** Where the time went, and the money. @param {{one: any}} props */
function Split({ one }) {
  const parts = [
    ["agent", one.agent_seconds],
    ["gates", one.gate_seconds],
    ["wait", one.wait_seconds],
  ];
  const all = parts.reduce((sum, [, seconds]) => sum + seconds, 0);
  const words = parts.filter(([, seconds]) => seconds >= 0.05).map(([name, seconds]) => `${name} ${duration(seconds)}`);
  return html`
    <span class="iteration-facts">
      <span class="split" title=${words.join(", ")} aria-hidden="true">${all > 0 && parts.map(([name, seconds]) =>
        html`<i class=${`is-${name}`} style=${{ width: `${(seconds / all) * 100}%` }} />`)}</span>
      <span class="soft">${duration(all)}${one.cost_usd !== null && ` · ${money(one.cost_usd)}`}
        <${Changed} diff=${one.diff} /></span>
    </span>`;
}

/** @param {{diff: any}} props */
function Changed({ diff }) {
  if (!diff.files.length) return null;
  const [added, removed] = ["added", "removed"].map((side) =>
    diff.files.reduce((/** @type {number} */ sum, /** @type {any} */ file) => sum + (file[side] || 0), 0));
  return html` · <span class="tone-good">+${added}</span> <span class="tone-bad">−${removed}</span>`;
}

/** @param {{run: string, one: any}} props */
function Loaded({ run, one }) {
  const [whole, setWhole] = useState(/** @type {any} */ (null));
  const [error, setError] = useState(/** @type {any} */ (null));
  // Again when a phase of it ends: then more of it is known.
  const phase = `${one.ending} ${one.checks.length} ${one.ended} ${one.judgement?.verdict} ${one.commit}`;
  useEffect(() => {
    const worker = one.worker ? `?worker=${encodeURIComponent(one.worker)}` : "";
    get(runPath(run, `/iterations/${one.number}${worker}`)).then(setWhole, setError);
  }, [phase]);
  if (error) return html`<${Trouble} error=${error} />`;
  if (!whole) return html`<p class="soft inside">Reading…</p>`;
  return html`<${Inside} one=${whole} />`;
}
