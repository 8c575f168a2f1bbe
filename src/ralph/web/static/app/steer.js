/** Asking something of a run: the state of one request, and the words when it may not be made. */
import { html, useState } from "../vendor/preact-htm.js";
import { canWrite, post, runPath } from "./api.js";
import { announce, Trouble } from "./parts.js";
import { Symbol } from "./symbols.js";

/**
 * One request at a time: `ask(verb, body)`, and what came of it.
 * @param {string} run
 */
export function useRequest(run) {
  const [busy, setBusy] = useState(false);
  const [words, setWords] = useState("");
  const [error, setError] = useState(/** @type {any} */ (null));
  /** @param {string} verb @param {object} [body] */
  const ask = async (verb, body) => {
    setBusy(true);
    setError(null);
    try {
      const told = await post(runPath(run, `/${verb}`), body);
      setWords(told.words);
      announce(told.words);
      return true;
    } catch (caught) {
      setError(caught);
      return false;
    } finally {
      setBusy(false);
    }
  };
  const outcome = error
    ? html`<${Trouble} error=${error} />`
    : words && html`<p class="told tone-good"><${Symbol} shape="tick" />${words}</p>`;
  return { ask, busy, outcome };
}

/** Why this page can change nothing, if so. @param {{me: any}} props */
export function Locked({ me }) {
  if (me.read_only) {
    return html`<p class="locked soft">This page only looks: <code>ralph web</code> was started${" "}
      with <code>--read-only</code>.</p>`;
  }
  return html`<p class="locked soft">After a reload this page can only look. To steer, open the link
    that${" "}<code>ralph web</code> printed once more.</p>`;
}

/** @param {any} me of /api/me */
export const maySteer = (me) => !me.read_only && canWrite();

/**
 * A question, and the place for its answer.
 * @param {{me: any, run: string, task: string, title: string, question: string}} props
 */
export function Answer({ me, run, task, title, question }) {
  const [text, setText] = useState("");
  const [isGiven, setGiven] = useState(false); // the run has it, and asks until it takes up the task
  const { ask, busy, outcome } = useRequest(run);
  const id = `answer-${run}-${task}`;
  /** @param {Event} event */
  const submit = async (event) => {
    event.preventDefault();
    setGiven(await ask("answer", { task, text }));
  };
  return html`
    <form class="answer" onSubmit=${submit}>
      <label for=${id}>
        <span class="answer-task"><${Symbol} shape="ask" /> <code>${task}</code> <bdi>${title}</bdi></span>
        <span class="said answer-question">${question || "It waits for your answer."}</span>
      </label>
      ${isGiven || (maySteer(me)
        ? html`<div class="row">
            <textarea id=${id} class="field" rows="2" placeholder="Your answer" value=${text}
              onInput=${(/** @type {any} */ event) => setText(event.target.value)}></textarea>
            <button class="button is-first" disabled=${busy || !text.trim()}>Answer</button>
          </div>`
        : html`<${Locked} me=${me} />`)}
      ${outcome}
    </form>`;
}
