/** The page for whoever has no session yet. */
import { html, useState } from "../../vendor/preact-htm.js";
import { login, tokenIn } from "../api.js";
import { Trouble } from "../parts.js";

/** @param {{entered: () => void, error: any, tried: boolean}} props whether a link was opened, in vain */
export function Login({ entered, error, tried }) {
  const [text, setText] = useState("");
  const [refusal, setRefusal] = useState(/** @type {any} */ (null));
  /** @param {Event} event */
  const submit = async (event) => {
    event.preventDefault();
    try {
      await login(tokenIn(text));
      entered();
    } catch (caught) {
      setRefusal(caught);
    }
  };
  return html`
    <main class="login" id="main">
      <h1>Open the link that <code>ralph web</code> printed</h1>
      <p>It ends with <code>#token=…</code>, is the key to this page, and is another after each start. It stands in
        the terminal in which <code>ralph web</code> runs. Or paste it here:</p>
      <form onSubmit=${submit}>
        <label for="token">Link or token</label>
        <div class="row">
          <input id="token" class="field" type="password" autocomplete="off" spellcheck=${false}
            value=${text} onInput=${(/** @type {any} */ event) => setText(event.target.value)} />
          <button class="button is-first" disabled=${!text.trim()}>Open</button>
        </div>
      </form>
      ${(refusal || tried || error.status === 403) && html`<${Trouble} error=${refusal || error} />`}
    </main>`;
}
