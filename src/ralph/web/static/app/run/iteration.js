/** One iteration, unfolded: what it was told, what the agent said, what the gates found, the verdict. */
import { html } from "../../vendor/preact-htm.js";
import { clock, count, duration, money, plural } from "../format.js";
import { Said } from "../parts.js";
import { Badge, Symbol, verdictLook } from "../symbols.js";
import { Diff } from "./diff.js";

/** @param {{one: any}} props */
export const Inside = ({ one }) => html`
  <div class="inside">
    <${Verdict} one=${one} />
    <${Told} one=${one} />
    <${Items} one=${one} />
    <${Checks} checks=${one.checks} />
    <${Diff} diff=${one.diff} />
    <${Steps} one=${one} />
  </div>`;

/** @param {{one: any}} props */
function Verdict({ one }) {
  const { judgement } = one;
  if (!judgement) return null;
  const look = verdictLook(one);
  return html`
    <section class=${`verdict tone-${look.tone}`} aria-label="Verdict">
      <h3 class="out-of-sight">The verdict</h3>
      <p class="verdict-head"><${Badge} look=${look} big /> <${Said} text=${judgement.words} /></p>
      ${judgement.rule && html`<p class="rule">Rule <code>${judgement.rule}</code>
        ${judgement.rule_words && html`<span class="soft"> – ${judgement.rule_words}</span>`}</p>`}
      <${Group} title=${judgement.is_disbelieved ? "It claimed, and was not believed" : "It claimed"}
        lines=${judgement.claims} kind="claim" />
      <${Group} title="Objections" lines=${judgement.objections} tone="bad" shape="cross" />
      <${Group} title="Evidence" lines=${judgement.evidence} tone="good" shape="tick" />
      <${Group} title="Almost a claim" lines=${judgement.notes} tone="warn" shape="bang" />
      <${Group} title="Fed back to the next prompt" lines=${judgement.feedback} tone="quiet" shape="arrow" />
    </section>`;
}

/** @param {{title: string, lines: string[], tone?: string, shape?: string, kind?: string}} props */
const Group = ({ title, lines, tone = "quiet", shape = "", kind = "" }) =>
  lines.length > 0 &&
  html`<div class="lines"><h4>${title}</h4>
    <ul>${lines.map((line) => html`<li class=${`tone-${tone}`}>${shape && html`<${Symbol} shape=${shape} />`}
      <${Said} text=${line} kind=${kind} /></li>`)}</ul></div>`;

/** @param {{one: any}} props */
const Told = ({ one }) => html`
  <section class="part" aria-label="Prompt">
    <h3>What it was told</h3>
    ${one.person_notes.map((/** @type {string} */ note) => html`<blockquote class="person-note">
      <span class="soft">A person's note</span><${Said} text=${note} of="p" /></blockquote>`)}
    <${Group} title="Fed back from the iteration before" lines=${one.fed_back} tone="warn" shape="arrow" />
    ${one.prompt && html`<details><summary>The whole prompt (${plural(one.prompt.length, "character")})</summary>
      <pre class="said sunk" tabindex="0">${one.prompt}</pre></details>`}
  </section>`;

/** @param {{one: any}} props */
function Items({ one }) {
  const facts = [
    duration(one.agent_seconds),
    one.cost_usd !== null && money(one.cost_usd),
    `${count(one.usage.input + one.usage.cache_read + one.usage.cache_write)} tokens in`,
    `${count(one.usage.output)} out`,
  ].filter(Boolean);
  return html`
    <section class="part" aria-label="Agent">
      <h3>What the agent did <small>${facts.join(" · ")}</small></h3>
      ${one.trouble && html`<p class="told tone-bad"><${Symbol} shape="bang" /><${Said} text=${one.trouble} /></p>`}
      ${one.tools.length > 0 && html`<p class="tools">${one.tools.map((/** @type {any} */ [name, calls, errors]) => html`
        <span class="chip-quiet"><bdi>${name}</bdi> <b>${calls}</b>${errors > 0 && html` <span class="tone-bad">${errors} failed</span>`}
        </span>`)}</p>`}
      <ol class="items">${one.items.map((/** @type {any} */ item, /** @type {number} */ at) => html`
        <${Item} key=${at} item=${item} />`)}</ol>
      ${one.items_left_out > 0 && html`<p class="soft">${one.items_left_out} in the middle are left out; all of them
        stand in the log.</p>`}
    </section>`;
}

/** @param {{item: any}} props */
function Item({ item }) {
  if (item.kind === "tool") {
    return html`<li class=${`item is-tool ${item.is_error ? "tone-bad" : ""}`}>
      <details><summary><b class="said">${item.name}</b> <${Said} text=${item.text} kind="item-call" />
        ${item.is_error && html`<span class="badge tone-bad"><${Symbol} shape="cross" />failed</span>`}</summary>
        ${item.output && html`<pre class="said sunk" tabindex="0">${item.output}</pre>`}</details></li>`;
  }
  return html`<li class=${`item is-${item.kind}`}>
    ${item.kind !== "text" && html`<span class="item-kind">${item.kind}</span>`}<${Said} text=${item.text} /></li>`;
}

/** @param {{checks: any[]}} props */
const Checks = ({ checks }) =>
  checks.length > 0 &&
  html`<section class="part" aria-label="Gates">
    <h3>What the gates found</h3>
    <ul class="checks">${checks.map((check) => html`<${Check} check=${check} />`)}</ul>
  </section>`;

/** @param {{check: any}} props */
function Check({ check }) {
  const passed = !check.objections.length;
  return html`
    <li class=${`check tone-${passed ? "good" : "bad"}`}>
      <p><${Symbol} shape=${passed ? "tick" : "cross"} /> <b class="said">${check.gate}</b>
        <span class="soft"> ${passed ? "passed" : "objected"} in ${duration(check.seconds)}${
          check.code !== null ? `, exit ${check.code}` : ""}</span></p>
      ${check.objections.map((/** @type {string} */ text) => html`<p><${Said} text=${text} /></p>`)}
      ${check.output && html`<pre class="said sunk" tabindex="0">${check.output}</pre>`}
      ${check.log && html`<p class="soft">All of it: <code class="said">${check.log}</code></p>`}
    </li>`;
}

/** @param {{one: any}} props */
const Steps = ({ one }) =>
  one.settled.length > 0 &&
  html`<section class="part" aria-label="Settled">
    <h3>What was done about it</h3>
    <ul class="plain-list">${one.settled.map((/** @type {any} */ step) => html`
      <li class=${step.ok ? "" : "tone-bad"}><${Symbol} shape=${step.ok ? "tick" : "cross"} /> <b class="said">${step.key}</b>
        ${step.commit && html` <code>${step.commit.slice(0, 10)}</code>`}
        ${step.detail && html` <${Said} text=${step.detail} kind="soft" />`}</li>`)}</ul>
    ${one.ended && html`<p class="soft">${clock(one.began)} to ${clock(one.ended)}</p>`}
  </section>`;
