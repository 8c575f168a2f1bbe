/** Pause, resume, stop, and a note for the next prompt. */
import { html, useEffect, useState } from "../../vendor/preact-htm.js";
import { Locked, maySteer, useRequest } from "../steer.js";
import { Symbol } from "../symbols.js";

const SURE_FOR = 6000; // milliseconds in which the second press counts

/** @param {{me: any, recap: any}} props */
export function Controls({ me, recap }) {
  const { ask, busy, outcome } = useRequest(recap.run);
  if (!maySteer(me)) return html`<section class="controls" aria-label="Steer"><${Locked} me=${me} /></section>`;
  const paused = recap.state === "paused" || recap.pending === "pause";
  return html`
    <section class="controls" aria-label="Steer">
      <${Note} recap=${recap} ask=${ask} busy=${busy} />
      <div class="row control-buttons">
        ${paused
          ? html`<button class="button" disabled=${busy} onClick=${() => ask("resume")}>
              <${Symbol} shape="play" />Resume</button>`
          : html`<button class="button" disabled=${busy} onClick=${() => ask("pause")}>
              <${Symbol} shape="pause" />Pause</button>`}
        <${Sure} word="Stop" question="Stop after this turn?" shape="square" busy=${busy}
          act=${() => ask("stop", { now: false })} />
        <${Sure} word="Stop now" question="Cut the turn off now?" shape="cross" busy=${busy}
          act=${() => ask("stop", { now: true })} />
      </div>
      ${outcome}
    </section>`;
}

/** A button that asks once more. @param {{word: string, question: string, shape: string, busy: boolean, act: () => void}} props */
function Sure({ word, question, shape, busy, act }) {
  const [sure, setSure] = useState(false);
  useEffect(() => {
    if (!sure) return undefined;
    const timer = setTimeout(() => setSure(false), SURE_FOR);
    return () => clearTimeout(timer);
  }, [sure]);
  const press = () => {
    setSure(!sure);
    if (sure) act();
  };
  return html`<button class=${`button ${sure ? "is-danger" : ""}`} disabled=${busy} onClick=${press}
    aria-label=${sure ? `${question} Press once more: ${word}` : word} onBlur=${() => setSure(false)}>
    <${Symbol} shape=${shape} />${sure ? question : word}</button>`;
}

/** @param {{recap: any, ask: (verb: string, body: object) => Promise<boolean>, busy: boolean}} props */
function Note({ recap, ask, busy }) {
  const [text, setText] = useState("");
  const [task, setTask] = useState("");
  const open = recap.tasks.filter((/** @type {any} */ one) => !["done", "cancelled"].includes(one.state));
  /** @param {Event} event */
  const submit = async (event) => {
    event.preventDefault();
    if (await ask("note", task ? { text, task } : { text })) setText("");
  };
  return html`
    <form class="note row" onSubmit=${submit}>
      <input class="field" aria-label="Note for the next prompt" placeholder="Tell the agent something with its next prompt"
        value=${text} onInput=${(/** @type {any} */ event) => setText(event.target.value)} />
      ${open.length > 0 && html`<select class="field" aria-label="Task that the note is for" value=${task}
        onChange=${(/** @type {any} */ event) => setTask(event.target.value)}>
        <option value="">any task</option>
        ${open.map((/** @type {any} */ one) => html`<option value=${one.id}>${one.id}</option>`)}</select>`}
      <button class="button" disabled=${busy || !text.trim()}>Send note</button>
    </form>`;
}
