/** The runs of this machine, live; what waits for a person stands above them. */
import { html, useEffect, useMemo, useState } from "../../vendor/preact-htm.js";
import { get, runPath } from "../api.js";
import { age, askedOf, lastPart, money, moment, plural } from "../format.js";
import { Live } from "../live.js";
import { announce, Command, Empty, Meter, Said, Trouble } from "../parts.js";
import { address } from "../router.js";
import { Answer } from "../steer.js";
import { Badge, isLive, lookOf } from "../symbols.js";
import { showState } from "../title.js";

const MOST = 200;
const AGAIN = 2000; // milliseconds

/** @param {{me: any, refused: () => void, setLink: (state: string) => void}} props */
export function Runs({ me, refused, setLink }) {
  const { runs, more, error, load } = useRuns(refused, setLink);
  const [state, setState] = useState("");
  const [text, setText] = useState("");
  const now = useNow();
  const asking = runs?.filter((run) => run.asks.length) || [];
  const live = runs?.filter((run) => isLive(run.state)) || [];

  useEffect(() => {
    const worst = asking.length ? "asking" : live.length ? "running" : "";
    showState(asking.length ? plural(asking.length, "question") : `${live.length} running`, worst);
  }, [asking.length, live.length]);

  const words = text.toLowerCase();
  const shown = useMemo(
    () =>
      (runs || []).filter(
        (run) =>
          (!state || run.state === state) &&
          [run.run, askedOf(run), run.workspace, run.command, run.agent, run.model]
            .join(" ")
            .toLowerCase()
            .includes(words),
      ),
    [runs, state, words],
  );
  if (error && !runs) return html`<${Trouble} error=${error} />`;
  if (!runs) return html`<p class="soft">Reading the runs…</p>`;
  if (!runs.length) return html`<${NoRuns} />`;
  return html`
    <div class="page-head"><h1>Runs</h1>
      <p class="soft">${plural(live.length, "run")} at work, ${runs.length - live.length} ended</p></div>
    ${asking.length > 0 && html`<${Asks} me=${me} runs=${asking} />`}
    <div class="filters">
      <${States} runs=${runs} chosen=${state} choose=${setState} />
      <input type="search" class="field" placeholder="Filter" aria-label="Filter the runs" value=${text}
        onInput=${(/** @type {any} */ event) => setText(event.target.value)} />
    </div>
    <ul class="runs">${shown.map((run) => html`<${Entry} key=${run.run} run=${run} now=${now} />`)}</ul>
    ${!shown.length && html`<${Empty} title="No run is like that." />`}
    ${more > 0 && html`<button class="button" onClick=${() => load(runs.length + more)}>
      Show ${more} older</button>`}`;
}

/** The list, and what changes in it. @param {() => void} refused @param {(state: string) => void} setLink */
function useRuns(refused, setLink) {
  const [runs, setRuns] = useState(/** @type {any[] | null} */ (null));
  const [more, setMore] = useState(0);
  const [error, setError] = useState(/** @type {any} */ (null));
  const load = (/** @type {number} */ limit) =>
    get(`/api/runs?limit=${limit}`).then((told) => {
      setRuns(told.runs);
      setMore(told.more);
    }, setError);
  useEffect(() => {
    const live = new Live("/api/events", ["runs", "gone"], {
      told: (events) => setRuns((old) => events.reduce(changed, old || [])),
      state: (state) => {
        setLink(state);
        // What changed while nobody listened is not told again.
        if (state === "live") load(MOST);
      },
      refused,
    });
    load(MOST);
    return () => live.close();
  }, []);
  return { runs, more, error, load };
}

/** @param {any[]} runs @param {import("../live.js").Told} event */
function changed(runs, { name, data }) {
  const told = name === "gone" ? [].concat(data.runs) : data.runs;
  const ids = new Map(told.map((/** @type {any} */ one) => [name === "gone" ? one : one.run, one]));
  if (name === "gone") return runs.filter((run) => !ids.has(run.run));
  for (const old of runs) {
    const run = ids.get(old.run);
    if (run && run.state !== old.state) announce(`${askedOf(run)}: ${lookOf(run.state).word}`);
  }
  const fresh = told.filter((/** @type {any} */ one) => !runs.some((run) => run.run === one.run));
  return [...fresh, ...runs.map((run) => ids.get(run.run) || run)];
}

/** The time, every ten seconds: ages grow although nothing happens. */
function useNow() {
  const [now, setNow] = useState(Date.now() / 1000);
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now() / 1000), 10_000);
    return () => clearInterval(timer);
  }, []);
  return now;
}

/** @param {{runs: any[], chosen: string, choose: (state: string) => void}} props */
function States({ runs, chosen, choose }) {
  const counts = new Map();
  for (const run of runs) counts.set(run.state, (counts.get(run.state) || 0) + 1);
  return html`
    <div class="chips" role="group" aria-label="Filter by state">
      <button class="chip" aria-pressed=${chosen === ""} onClick=${() => choose("")}>all <b>${runs.length}</b></button>
      ${[...counts].map(([state, count]) => html`
        <button class="chip" key=${state} aria-pressed=${chosen === state}
          onClick=${() => choose(chosen === state ? "" : state)}>
          <${Badge} look=${lookOf(state)} /><b>${count}</b></button>`)}
    </div>`;
}

/** @param {{run: any, now: number}} props */
function Entry({ run, now }) {
  const look = lookOf(run.state);
  return html`
    <li><a class=${`run tone-${look.tone} is-${run.state}`} href=${address("run", run.run)} data-step>
      <${Badge} look=${look} />
      <span class="run-what">
        <${Said} text=${askedOf(run)} kind="run-asked" />
        <span class="run-where soft">
          <span><b>ralph ${run.command}</b></span>
          <bdi title=${run.workspace}>${lastPart(run.workspace || "")}</bdi>
          <span>${[run.agent, run.model].filter(Boolean).join(" · ")}</span>
          ${run.workers > 1 && html`<span>${plural(run.workers, "worker")}</span>`}
          <span class="id">${run.run}</span>
        </span>
        ${run.state === "crashed" && html`<span class="run-problem tone-bad">Its process is gone. Go on with
          it: <code>ralph resume ${run.run}</code></span>`}
        ${run.problem && html`<${Said} text=${run.problem} kind="run-problem tone-bad" />`}
      </span>
      <${Meter} label="iterations" value=${String(run.iteration)} used=${run.iteration}
        most=${run.max_iterations} limit=${run.max_iterations ? String(run.max_iterations) : ""} />
      <${Meter} label="cost" value=${money(run.cost_usd)} used=${run.cost_usd} most=${run.max_cost_usd}
        limit=${run.max_cost_usd ? money(run.max_cost_usd) : ""}
        hint=${run.uncounted ? `+ ${plural(run.uncounted, "turn")} uncounted` : ""} />
      <time class="run-age soft" datetime=${new Date(run.time * 1000).toISOString()}
        title=${`started ${run.started_at ? moment(run.started_at) : "at an unknown time"}`}>
        ${age(now - run.time)}</time>
    </a></li>`;
}

/** @param {{me: any, runs: any[]}} props */
const Asks = ({ me, runs }) => html`
  <section class="asks" aria-labelledby="asks-title">
    <h2 id="asks-title">Waiting for you</h2>
    ${runs.map((run) => html`<${AskOfRun} key=${run.run} me=${me} run=${run} />`)}
  </section>`;

/** @param {{me: any, run: any}} props */
function AskOfRun({ me, run }) {
  const [tasks, setTasks] = useState(/** @type {any[] | null} */ (null));
  const asks = run.asks.join("\n");
  useEffect(() => {
    let timer = 0;
    const load = async () => {
      const recap = await get(runPath(run.run)).catch(() => null);
      const found = recap?.tasks.filter((/** @type {any} */ task) => task.question) || [];
      setTasks(recap?.tasks || []);
      // The list may know sooner that somebody asks than the recap knows what.
      if (found.length < run.asks.length) timer = setTimeout(load, AGAIN);
    };
    load();
    return () => clearTimeout(timer);
  }, [asks]);
  if (!tasks) return null;
  return html`
    <div class="card ask-card">
      <p class="soft"><a href=${address("run", run.run)}><bdi>${askedOf(run)}</bdi></a></p>
      ${run.asks.map((/** @type {string} */ id) => {
        const task = tasks.find((one) => one.id === id);
        return html`<${Answer} key=${id} me=${me} run=${run.run} task=${id}
          title=${task?.title || ""} question=${task?.question || ""} />`;
      })}
    </div>`;
}

const NoRuns = () => html`
  <div class="page-head"><h1>Runs</h1></div>
  <${Empty} title="There are no runs yet.">
    <p>Start one in a terminal, and it appears here:</p>
    <p><${Command} text="ralph run -p 'what to do'" /></p>
    <p>Or look at one that needs no agent and no key:</p>
    <p><${Command} text="ralph demo" /></p>
  <//>`;
