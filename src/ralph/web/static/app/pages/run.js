/** A run's page, and a worker's: what it does, what it was told, and how to steer it. */
import { html, useEffect, useRef, useState } from "../../vendor/preact-htm.js";
import { runPath } from "../api.js";
import { askedOf } from "../format.js";
import { useKeys } from "../keys.js";
import { announce, Trouble } from "../parts.js";
import { address, inRun } from "../router.js";
import { Board } from "../run/board.js";
import { Charts } from "../run/charts.js";
import { Controls } from "../run/controls.js";
import { useRun } from "../run/follow.js";
import { Header } from "../run/header.js";
import { Iterations } from "../run/iterations.js";
import { Log } from "../run/log.js";
import { Signals } from "../run/signals.js";
import { Strip } from "../run/strip.js";
import { AtWork, Workers } from "../run/workers.js";
import { Answer } from "../steer.js";
import { isLive, lookOf } from "../symbols.js";
import { showState } from "../title.js";

/** @param {{me: any, route: import("../router.js").Route, refused: () => void, setLink: (state: string) => void}} props */
export function Run({ me, route, refused, setLink }) {
  const { recap, error, log } = useRun(route.run, { refused, setLink });
  const state = recap?.state || "";
  const [told, setTold] = useState("");
  const usual = useRef("");
  useEffect(() => {
    if (!recap) return;
    showState(askedOf(recap), state);
    if (told && told !== state) announce(`The run is now: ${lookOf(state).word}`);
    setTold(state);
  }, [state, recap?.asked]);

  if (recap) usual.current ||= isLive(state) ? "log" : "iterations"; // who reads the log goes on reading
  const tabs = recap ? tabsOf(recap) : [];
  const tab = tabs.find((one) => one.name === route.tab) || tabs.find((one) => one.name === usual.current);
  useKeys(
    Object.fromEntries(tabs.map((one, at) => [String(at + 1), () => (location.hash = inRun(route, one.name))])),
  );
  if (error && !recap) return html`<${Trouble} error=${error} />`;
  if (!recap || !tab) return html`<p class="soft">Reading the run…</p>`;
  const asks = recap.tasks.filter((/** @type {any} */ task) => task.question);
  return html`
    <nav class="crumbs" aria-label="Where you are">
      <a href="#/">Runs</a>
      ${route.lead && html`<a href=${address("run", route.lead)}>${route.lead}</a>`}
      <span aria-current="page">${recap.run}</span>
    </nav>
    <${Header} recap=${recap} isWhole=${tab.name === "iterations"} />
    ${asks.length > 0 && tab.name !== "board" && html`<section class="asks" aria-labelledby="asks-title">
      <h2 id="asks-title">Waiting for you</h2>
      ${asks.map((/** @type {any} */ task) => html`<div class="card ask-card" key=${task.id}>
        <${Answer} me=${me} run=${route.lead || recap.run} task=${task.id} title=${task.title}
          question=${task.question} /></div>`)}
    </section>`}
    ${isLive(state) && !route.lead && html`<${Controls} me=${me} recap=${recap} />`}
    <${Strip} recap=${recap} route=${route} />
    <nav class="tabs" aria-label="Parts of the run">
      ${tabs.map((one) => html`<a key=${one.name} href=${inRun(route, one.name)}
        aria-current=${one === tab ? "page" : undefined}>${one.word}${one.count ? html` <b>${one.count}</b>` : ""}</a>`)}
      <a class="to-report" href=${runPath(recap.run, "/report.html")} target="_blank" rel="noopener">Report ↗</a>
    </nav>
    ${tab.show({ me, recap, route, log })}`;
}

/** @param {any} recap */
function tabsOf(recap) {
  const tabs = [
    { name: "log", word: "Log", count: 0,
      show: (/** @type {any} */ props) => html`<${AtWork} ...${props} />
        <${Log} ...${props} isLive=${isLive(props.recap.state)} />` },
    { name: "iterations", word: "Iterations", count: recap.iterations.length,
      show: (/** @type {any} */ props) => html`<${Iterations} ...${props} />` },
    { name: "board", word: "Board", count: recap.tasks.length,
      show: (/** @type {any} */ props) => html`<${Board} ...${props} />` },
    { name: "charts", word: "Charts", count: 0, show: (/** @type {any} */ props) => html`<${Charts} ...${props} />` },
    { name: "workers", word: "Workers", count: new Set(recap.lanes.map((/** @type {any} */ lane) => lane.worker)).size,
      show: (/** @type {any} */ props) => html`<${Workers} ...${props} />` },
    { name: "signals", word: "Signals", count: recap.steered.length,
      show: (/** @type {any} */ props) => html`<${Signals} ...${props} />` },
  ];
  const empty = { board: !recap.tasks.length || Boolean(recap.lead), workers: !recap.lanes.length && recap.workers < 2 };
  return tabs.filter((tab) => !empty[/** @type {keyof typeof empty} */ (tab.name)]);
}
