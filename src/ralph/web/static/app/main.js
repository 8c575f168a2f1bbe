/** The page: who reads it, which part is shown, and what stands above it. */
import { html, render, useEffect, useState } from "../vendor/preact-htm.js";
import { ApiError, get, login, tokenIn } from "./api.js";
import { pressed, search, Sheet, step, useKeys } from "./keys.js";
import { Login } from "./pages/login.js";
import { Run } from "./pages/run.js";
import { Runs } from "./pages/runs.js";
import { Spending } from "./pages/spending.js";
import { Trouble } from "./parts.js";
import { useRoute } from "./router.js";
import { Symbol } from "./symbols.js";

function App() {
  const route = useRoute();
  const [me, setMe] = useState(/** @type {any} */ (null));
  const [error, setError] = useState(/** @type {any} */ (null));
  const [tried, setTried] = useState(false); // whether a link was opened
  const [link, setLink] = useState("live");
  const [sheet, setSheet] = useState(false);

  const enter = async () => {
    setError(null);
    setTried(location.hash.startsWith("#token="));
    try {
      await takeToken();
      setMe(await get("/api/me"));
    } catch (caught) {
      setMe(null);
      setError(caught);
    }
  };
  useEffect(() => {
    enter();
    // A printed link that is opened where the page already stands loads nothing anew.
    const changed = () => location.hash.startsWith("#token=") && enter();
    addEventListener("hashchange", changed);
    addEventListener("keydown", pressed);
    return () => removeEventListener("hashchange", changed);
  }, []);
  useKeys({
    j: () => step(1),
    k: () => step(-1),
    "/": search,
    "?": () => setSheet(true),
    u: () => (location.hash = route.lead ? `#/run/${route.lead}` : "#/"),
  });

  if (error instanceof ApiError && [401, 403].includes(error.status)) {
    return html`<${Login} entered=${enter} error=${error} tried=${tried} />`;
  }
  const shared = { me, route, refused: enter, setLink };
  return html`
    <a class="skip" href="#main" onClick=${toMain}>Skip to the content</a>
    <${Top} me=${me} page=${route.page} link=${route.page === "spending" ? "" : link} help=${() => setSheet(true)} />
    <main id="main" tabindex="-1">
      ${error && html`<${Trouble} error=${error} />`}
      ${me && route.page === "runs" && html`<${Runs} ...${shared} />`}
      ${me && route.page === "run" && html`<${Run} key=${route.run} ...${shared} />`}
      ${me && route.page === "spending" && html`<${Spending} ...${shared} />`}
    </main>
    <${Sheet} open=${sheet} close=${() => setSheet(false)} />`;
}

/** Log in with the token of the address bar, and drop it from there. */
async function takeToken() {
  if (!location.hash.startsWith("#token=")) return;
  const token = tokenIn(location.hash);
  history.replaceState(null, "", location.pathname);
  dispatchEvent(new HashChangeEvent("hashchange"));
  await login(token);
}

/** @param {Event} event */
function toMain(event) {
  event.preventDefault();
  document.getElementById("main")?.focus();
}

/** @param {{me: any, page: string, link: string, help: () => void}} props */
const Top = ({ me, page, link, help }) => html`
  <header class="top">
    <a class="brand" href="#/"><${Mark} /><b>ralph</b></a>
    <nav aria-label="Pages">
      <a href="#/" aria-current=${page === "runs" ? "page" : undefined}>Runs</a>
      <a href="#/spending" aria-current=${page === "spending" ? "page" : undefined}>Spending</a>
    </nav>
    <span class="grow" />
    ${me?.read_only && html`<span class="badge tone-quiet" title="started with --read-only">read only</span>`}
    ${me && link && html`<span class=${`link is-${link}`} role="status">
      <${Symbol} shape=${link === "live" ? "dot" : "wave"} />${link === "live" ? "live" : "reconnecting…"}</span>`}
    ${me && html`<span class="soft host">${me.host}</span>`}
    <button type="button" class="plain" onClick=${help} aria-label="Keys" title="Keys (?)">?</button>
  </header>`;

const Mark = () => html`
  <svg viewBox="0 0 24 24" width="22" height="22" aria-hidden="true">
    <path d="M12 2.5a9.5 9.5 0 1 0 9.5 9.5h-3A6.5 6.5 0 1 1 12 5.5z" fill="currentColor" />
    <path class="mark-tick" d="m8.6 11.3 3 3L21 4.8l2 2.1-11.4 11.4L6.5 13.3z" />
  </svg>`;

render(html`<${App} />`, /** @type {HTMLElement} */ (document.getElementById("app")));
