/** Small parts that several pages show. */
import { html, useState } from "../vendor/preact-htm.js";
import { Symbol } from "./symbols.js";

const TOGETHER = 3000; // milliseconds in which words come behind the last, and do not cut them off
let announced = 0;

/** Say something to those who do not see the page. @param {string} words */
export function announce(words) {
  const place = document.getElementById("announcer");
  if (!place) return;
  const before = Date.now() - announced < TOGETHER ? place.textContent : "";
  announced = Date.now();
  place.textContent = [before, words].filter(Boolean).join(" ");
}

/**
 * What was used of what may be, as a bar if there is a limit.
 * @param {{label: string, value: string, used?: number | null, most?: number | null,
 *          limit?: string, hint?: string, ahead?: number[] | null}} props
 */
export function Meter({ label, value, used = null, most = null, limit = "", hint = "", ahead = null }) {
  const part = used !== null && most ? Math.min(used / most, 1) : null;
  const tone = part === null || part < 0.75 ? "accent" : part < 1 ? "warn" : "bad";
  return html`
    <div class="meter">
      <div class="meter-words">
        <span class="meter-label">${label}</span>
        <span><b>${value}</b>${limit && html`<span class="soft"> of ${limit}</span>`}</span>
      </div>
      ${part !== null &&
      html`<div class=${`bar tone-${tone}`} role="progressbar" aria-label=${label}
        aria-valuenow=${Math.round(part * 100)} aria-valuemin="0" aria-valuemax="100"
        aria-valuetext=${`${value} of ${limit}`}><i style=${{ width: `${part * 100}%` }} />${ahead && most &&
        html`<s style=${band(ahead, most)} />`}</div>`}
      ${hint && html`<div class="meter-hint">${hint}</div>`}
    </div>`;
}

/** Where a forecast sees the end, on the bar of a limit. @param {number[]} ends @param {number} most */
function band(ends, most) {
  const [from, to] = ends.map((end) => Math.min(end / most, 1) * 100);
  return { left: `${Math.min(from, 98)}%`, width: `${Math.max(to - from, 2)}%` };
}

/** A command to type, and a button that copies it. @param {{text: string}} props */
export function Command({ text }) {
  const [copied, setCopied] = useState(false);
  const copy = () =>
    navigator.clipboard?.writeText(text).then(() => {
      setCopied(true);
      setTimeout(() => setCopied(false), 1500);
    });
  return html`
    <span class="command"><code>${text}</code><button type="button" class="plain" onClick=${copy}
      aria-label=${`Copy: ${text}`}>${copied ? "copied" : "copy"}</button></span>`;
}

/** @param {{error: any}} props */
export const Trouble = ({ error }) => html`
  <div class="notice tone-bad" role="alert"><${Symbol} shape="bang" />
    <div>${error.message}${error.remedy && html`<div class="soft">${error.remedy}</div>`}</div>
  </div>`;

/** @param {{title: string, children?: any}} props */
export const Empty = ({ title, children }) => html`
  <div class="empty"><p class="empty-title">${title}</p>${children}</div>`;

/** Text that came from outside: a node of its own, isolated, so that it turns nothing around. */
export const Said = ({ text, of = "span", kind = "" }) => html`<${of} class=${`said ${kind}`}>${text}<//>`;

/** @param {{title: string, lines: string[], tone: string, shape: string}} props */
export const Lines = ({ title, lines, tone, shape }) =>
  lines.length > 0 &&
  html`<div class="lines">
    <h3>${title}</h3>
    <ul>${lines.map((line) => html`<li class=${`tone-${tone}`}><${Symbol} shape=${shape} />
      <${Said} text=${line} /></li>`)}</ul>
  </div>`;
