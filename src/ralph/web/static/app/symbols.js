/** States and verdicts: for each a shape, a tone and a word, so that colour never stands alone. */
import { html } from "../vendor/preact-htm.js";

const SHAPES = {
  play: "M5 3.2v9.6L12.5 8z",
  clock: "M8 2a6 6 0 1 0 0 12A6 6 0 0 0 8 2m.8 2.6v3.1l2.2 1.5-.9 1.2-2.9-2V4.6z",
  pause: "M4 3h3v10H4zM9 3h3v10H9z",
  ask: "M8 1.5a4 4 0 0 0-4 4h2a2 2 0 1 1 3 1.7C7.7 8 7 8.8 7 10.2h2c0-.8.3-1 1.1-1.5A4 4 0 0 0 8 1.5M7 12h2v2.2H7z",
  cross: "m3.1 4.5 1.4-1.4L8 6.6l3.5-3.5 1.4 1.4L9.4 8l3.5 3.5-1.4 1.4L8 9.4l-3.5 3.5-1.4-1.4L6.6 8z",
  tick: "m2.6 8.4 1.5-1.5 2.7 2.7 5.6-5.8 1.5 1.5-7.1 7.3z",
  ring: "M8 2a6 6 0 1 0 0 12A6 6 0 0 0 8 2m0 2a4 4 0 1 1 0 8 4 4 0 0 1 0-8",
  octagon: "M5.3 1.5h5.4l3.8 3.8v5.4l-3.8 3.8H5.3l-3.8-3.8V5.3z",
  wave: "M2 9.5C4 5 6 5 8 8s4 3 6-1.5l-1.8-.8C10.8 8.7 10 8.6 8.9 7 6.9 4 3.4 2.8.3 8.7z",
  bang: "M7 2h2l-.3 7.5H7.3zM7 11.5h2V14H7z",
  square: "M3.5 3.5h9v9h-9z",
  arrow: "M8.5 3 14 8l-5.5 5v-3.6H2V6.6h6.5z",
  down: "M2.5 5h11L8 12.5z",
  dot: "M8 4.5a3.5 3.5 0 1 0 0 7 3.5 3.5 0 0 0 0-7",
  lens: "M7 2a5 5 0 1 0 3 9l3 3 1.3-1.3-3-3A5 5 0 0 0 7 2m0 1.8a3.2 3.2 0 1 1 0 6.4 3.2 3.2 0 0 1 0-6.4",
};

/** @typedef {{shape: keyof typeof SHAPES, tone: string, word: string}} Look */

/** @type {Record<string, Look>} */
const STATES = {
  running: { shape: "play", tone: "accent", word: "running" },
  waiting: { shape: "clock", tone: "warn", word: "waiting" },
  paused: { shape: "pause", tone: "warn", word: "paused" },
  asking: { shape: "ask", tone: "ask", word: "asking" },
  crashed: { shape: "cross", tone: "bad", word: "crashed" },
  unknown: { shape: "ring", tone: "bad", word: "unreadable" },
  completed: { shape: "tick", tone: "good", word: "completed" },
  limit: { shape: "ring", tone: "warn", word: "limit" },
  blocked: { shape: "octagon", tone: "bad", word: "blocked" },
  stalled: { shape: "wave", tone: "warn", word: "stalled" },
  failing: { shape: "bang", tone: "bad", word: "failing" },
  config: { shape: "bang", tone: "bad", word: "refused" },
  bug: { shape: "bang", tone: "bad", word: "bug" },
  interrupted: { shape: "square", tone: "quiet", word: "interrupted" },
};

/** @type {Record<string, Look>} */
const VERDICTS = {
  continue: { shape: "arrow", tone: "quiet", word: "went on" },
  accept: { shape: "tick", tone: "good", word: "accepted" },
  park: { shape: "down", tone: "warn", word: "left to you" },
  wait: { shape: "clock", tone: "warn", word: "waited" },
  stop: { shape: "square", tone: "quiet", word: "ended the run" },
};
const DISBELIEVED = { shape: "cross", tone: "bad", word: "not believed" };
const COMPLETED = { shape: "tick", tone: "good", word: "completed" };
/** @type {Look} */
const CUT = { shape: "square", tone: "warn", word: "cut off" };
/** @type {Look} */
export const AT_WORK = { shape: "dot", tone: "accent", word: "at work" };

/** @type {Record<string, Look>} */
export const COLUMNS = {
  pending: { shape: "ring", tone: "quiet", word: "To do" },
  in_progress: { shape: "play", tone: "accent", word: "At work" },
  review: { shape: "lens", tone: "ask", word: "In review" },
  blocked: { shape: "octagon", tone: "bad", word: "Blocked" },
  done: { shape: "tick", tone: "good", word: "Done" },
  cancelled: { shape: "square", tone: "quiet", word: "Cancelled" },
};

/** @param {string} state @returns {Look} */
export const lookOf = (state) => STATES[state] || { shape: "dot", tone: "quiet", word: state };

/** Whether a run in this state has a process. @param {string} state */
export const isLive = (state) => ["running", "waiting", "paused", "asking"].includes(state);

/** @param {any} one an iteration @returns {Look} */
export function verdictLook(one) {
  const { judgement } = one;
  if (!judgement) return one.ending === "cut" ? CUT : AT_WORK;
  if (judgement.is_disbelieved) return /** @type {Look} */ (DISBELIEVED);
  if (judgement.verdict === "stop" && judgement.evidence.length) return /** @type {Look} */ (COMPLETED);
  return VERDICTS[judgement.verdict] || { shape: "dot", tone: "quiet", word: judgement.verdict };
}

/** @param {{shape: string}} props */
export const Symbol = ({ shape }) => html`
  <svg class="symbol" viewBox="0 0 16 16" width="16" height="16" aria-hidden="true">
    <path d=${SHAPES[/** @type {keyof typeof SHAPES} */ (shape)]} fill="currentColor" fill-rule="evenodd" />
  </svg>`;

/** A shape and a word in their tone. @param {{look: Look, big?: boolean}} props */
export const Badge = ({ look, big = false }) => html`
  <span class=${`badge tone-${look.tone} ${big ? "is-big" : ""}`}>
    <${Symbol} shape=${look.shape} />${look.word}
  </span>`;
