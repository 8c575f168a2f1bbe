/** The head of a run's page: what it does or how it ended, and what it has used of its limits. */
import { html, useEffect, useState } from "../../vendor/preact-htm.js";
import { age, askedOf, clock, count, duration, lastPart, money, moment, plural } from "../format.js";
import { Command, Lines, Meter, Said } from "../parts.js";
import { Badge, isLive, lookOf } from "../symbols.js";

/** @param {{recap: any, isWhole: boolean}} props whether it tells what was achieved, too */
export function Header({ recap, isWhole }) {
  const look = lookOf(recap.state);
  const seconds = useSeconds(recap);
  const { spent } = recap;
  const ahead = endsOf(recap.forecast);
  const tokens = spent.usage.input + spent.usage.cache_read + spent.usage.cache_write;
  return html`
    <header class=${`run-head tone-${look.tone}`}>
      <div class="run-title">
        <${Badge} look=${look} big />
        <h1><${Said} text=${recap.outcome || look.word} /></h1>
      </div>
      <p class="run-task"><${Said} text=${askedOf(recap)} /></p>
      ${recap.why && !recap.outcome.includes(recap.why) && html`<p class="soft"><${Said} text=${recap.why} /></p>`}
      ${recap.pending && html`<p class="told tone-warn">Asked to ${recap.pending.replace("-", " ")}; it has not heard
        that yet.</p>`}
      ${recap.problem && html`<p class="told tone-bad"><${Said} text=${recap.problem} /></p>`}
      <div class="meters">
        <${Meter} label="Iterations" value=${String(spent.iterations)} used=${spent.iterations}
          most=${spent.max_iterations} limit=${spent.max_iterations ? String(spent.max_iterations) : ""}
          ahead=${ahead.iterations} />
        <${Meter} label="Time" value=${duration(seconds)} used=${seconds} most=${spent.max_seconds}
          limit=${spent.max_seconds ? duration(spent.max_seconds) : ""} ahead=${ahead.seconds}
          hint=${spent.waited >= 1 ? `+ ${duration(spent.waited)} asleep` : ""} />
        <${Meter} label="Cost" value=${money(spent.dollars)} used=${spent.dollars} most=${spent.max_dollars}
          limit=${spent.max_dollars ? money(spent.max_dollars) : ""} ahead=${ahead.cost}
          hint=${spent.uncounted ? `+ ${plural(spent.uncounted, "turn")} of unknown cost` : ""} />
        <${Meter} label="Tokens" value=${`${count(tokens)} in`} hint=${`${count(spent.usage.output)} out`} />
      </div>
      ${recap.forecast && html`<p class=${`ahead${recap.forecast.limit_holds === false ? " tone-warn" : ""}`}>
        <b>Forecast</b> <${Said} text=${recap.forecast.words} /></p>`}
      <${Facts} recap=${recap} />
      ${isWhole && html`<${Achieved} recap=${recap} />`}
    </header>`;
}

/** The least and the most that everything will likely come to, by amount. @param {any} forecast */
function endsOf(forecast) {
  /** @type {(left: number[] | null | undefined, at: number) => number[] | null} */
  const ends = (left, at) => left ? [forecast.after[at] + left[0], forecast.after[at] + left[2]] : null;
  const { iterations, seconds, cost_usd } = forecast || {};
  return { iterations: ends(iterations, 0), seconds: ends(seconds, 1), cost: ends(cost_usd, 2) };
}

/** The working time, which goes on between two recaps. @param {any} recap */
function useSeconds(recap) {
  const [now, setNow] = useState(0);
  useEffect(() => {
    const heard = Date.now();
    setNow(0);
    if (recap.state !== "running" && recap.state !== "asking") return;
    const timer = setInterval(() => setNow((Date.now() - heard) / 1000), 1000);
    return () => clearInterval(timer);
  }, [recap]);
  return recap.spent.seconds + now;
}

/** @param {{recap: any}} props */
function Facts({ recap }) {
  const facts = [
    ["run", recap.run],
    ["workspace", recap.workspace],
    ["branch", recap.branch],
    ["commit", recap.commit.slice(0, 10)],
    ["proven tree", recap.tree.slice(0, 10)],
    ["workers", recap.workers > 1 ? String(recap.workers) : ""],
    ["started", recap.started && moment(recap.started)],
    ["ended", recap.ended && moment(recap.ended)],
    ["wakes", recap.state === "waiting" && recap.wake_at && clock(recap.wake_at)],
    ["journal", recap.journal],
    ["process", isLive(recap.state) && recap.pid && String(recap.pid)],
  ];
  const agent = [recap.agent, recap.model].filter(Boolean).join(" · ");
  return html`
    <details class="more"><summary>
      <b>ralph ${recap.command}</b> ${agent && html`<span>by ${agent}</span>`}
      <span>in <bdi>${lastPart(recap.workspace)}</bdi></span>
      ${recap.started && html`<span>started ${age(recap.now - recap.started)}</span>`}
    </summary>
    <dl class="facts">${facts
      .filter(([, value]) => value)
      .map(([name, value]) => html`<div key=${name}><dt>${name}</dt><dd><bdi>${value}</bdi></dd></div>`)}</dl>
    </details>`;
}

/** @param {{recap: any}} props */
function Achieved({ recap }) {
  const any = recap.evidence.length + recap.done.length + recap.left.length + recap.yours.length + recap.next.length + recap.pulls.length;
  if (!any || isLive(recap.state)) return null;
  return html`
    <div class="achieved">
      <${Lines} title="Evidence" lines=${recap.evidence} tone="good" shape="tick" />
      <${Lines} title="Done" lines=${recap.done} tone="good" shape="tick" />
      <${Lines} title="Left" lines=${recap.left} tone="warn" shape="ring" />
      ${recap.pulls.length > 0 && html`<div class="lines"><h3>Pull requests</h3><ul>
        ${recap.pulls.map((/** @type {any} */ pull) => html`<li key=${pull.number}>
          <a href=${pull.url} rel="noreferrer" target="_blank">#${pull.number}</a> <bdi>${pull.branch} → ${pull.base}</bdi>
        </li>`)}</ul></div>`}
      <${Lines} title="For you" lines=${recap.yours} tone="ask" shape="ask" />
      ${recap.next.length > 0 && html`<div class="lines"><h3>To type next</h3>
        ${recap.next.map((/** @type {string} */ text) => html`<${Command} text=${text} />`)}</div>`}
    </div>`;
}
