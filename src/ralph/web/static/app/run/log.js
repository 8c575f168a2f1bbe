/** The log of a run: only what is near the window is in the page, however long the log is. */
import { Component, html, useEffect, useLayoutEffect, useRef, useState } from "../../vendor/preact-htm.js";
import { clock, plural } from "../format.js";
import { useKeys } from "../keys.js";
import { Empty } from "../parts.js";
import { Scroller } from "./scroller.js";

const KINDS = [
  ["agent", "words"],
  ["tool", "tools"],
  ["good", "passed"],
  ["bad", "failed"],
  ["notice", "notices"],
  ["ralph", "ralph"],
];

/** @param {{log: import("./logbook.js").Logbook, isLive: boolean}} props */
export function Log({ log, isLive }) {
  const box = useRef(/** @type {HTMLElement | null} */ (null));
  const scroller = useRef(/** @type {Scroller | null} */ (null));
  const [view, setView] = useState({ first: 0, last: 0, top: 0, bottom: 0 });
  const [follow, setFollow] = useState(isLive);
  const [, setVersion] = useState(0);
  const find = useFind(log, (line) => scroller.current?.goTo(line));

  useEffect(() => {
    const mine = new Scroller(/** @type {HTMLElement} */ (box.current), log, setView, setFollow);
    scroller.current = mine;
    mine.follow(follow);
    const end = log.watch(() => {
      mine.changed();
      setVersion((version) => version + 1);
    });
    log.renew();
    return () => {
      end();
      mine.close();
    };
  }, [log]);
  useLayoutEffect(() => scroller.current?.settle());
  const toggle = () => scroller.current?.follow(!follow);
  useKeys({ f: toggle, n: () => find.go(1), N: () => find.go(-1) });

  const pages = [];
  for (let page = view.first; page <= view.last && page < log.pageCount; page++) pages.push(page);
  return html`
    <section class="log-frame" aria-label="Log">
      <div class="log-tools">
        <${Find} ...${find} />
        <${Kinds} log=${log} />
        <button type="button" class="button is-small" aria-pressed=${follow} onClick=${toggle}>Follow</button>
      </div>
      <div class="log" ref=${box} tabindex="0" role="region" aria-label="Lines of the log">
        <div style=${{ height: `${view.top}px` }} />
        ${pages.map((page) => html`<${Page} key=${page} page=${page} lines=${log.pages.get(page)}
          height=${scroller.current?.heightOf(page)} words=${find.words} current=${find.current} />`)}
        <div style=${{ height: `${view.bottom}px` }} />
        ${log.known && !log.total && html`<${Empty} title="Nothing was said yet." />`}
      </div>
      <p class="log-foot soft">${plural(log.total, "line")}</p>
    </section>`;
}

/** The search in all lines, also those that are not in the page.
 * @param {import("./logbook.js").Logbook} log @param {(line: number) => void} goTo */
function useFind(log, goTo) {
  const [words, setWords] = useState("");
  const [found, setFound] = useState(/** @type {number[] | null} */ ([])); // null: still looking
  const [at, setAt] = useState(0);
  useEffect(() => {
    let wanted = true;
    setFound(words ? null : []);
    const timer = setTimeout(async () => {
      if (!words) return;
      log.show([]); // what is found may be of any kind
      const lines = await log.find(words).catch(() => []);
      if (!wanted) return;
      setFound(lines);
      setAt(0);
      if (lines.length) goTo(lines[0]);
    }, 200);
    return () => {
      wanted = false;
      clearTimeout(timer);
    };
  }, [words, log]);
  const go = (/** @type {number} */ by) => {
    if (!found?.length) return;
    const next = (at + by + found.length) % found.length;
    setAt(next);
    goTo(found[next]);
  };
  return { words, setWords, found, at, go, current: found?.length ? found[at] : -1 };
}

/** @param {number[] | null} found @param {number} at */
const countOf = (found, at) => (!found ? "looking…" : found.length ? `${at + 1} of ${found.length}` : "nothing");

/** @param {any} props */
function Find({ words, setWords, found, at, go }) {
  /** @param {KeyboardEvent} event */
  const key = (event) => {
    if (event.key === "Enter") go(event.shiftKey ? -1 : 1);
  };
  return html`
    <div class="find">
      <input type="search" class="field" placeholder="Search the log" aria-label="Search the log" value=${words}
        onInput=${(/** @type {any} */ event) => setWords(event.target.value)} onKeyDown=${key} />
      ${words && html`<span class="soft" role="status">${countOf(found, at)}</span>
        <button type="button" class="button is-small" onClick=${() => go(-1)} aria-label="The match before">↑</button>
        <button type="button" class="button is-small" onClick=${() => go(1)} aria-label="The next match">↓</button>`}
    </div>`;
}

/** @param {{log: import("./logbook.js").Logbook}} props */
const Kinds = ({ log }) => html`
  <div class="chips" role="group" aria-label="Show only">
    ${KINDS.map(([kind, word]) => html`<button type="button" class=${`chip kind-${kind}`} key=${kind}
      aria-pressed=${log.kinds.includes(kind)} onClick=${() => log.show(toggled(log.kinds, kind))}>${word}</button>`)}
  </div>`;

/** @param {string[]} kinds @param {string} kind */
const toggled = (kinds, kind) => (kinds.includes(kind) ? kinds.filter((one) => one !== kind) : [...kinds, kind]);

/** A hundred lines, drawn again only when they change. */
class Page extends Component {
  /** @param {any} next */
  shouldComponentUpdate(next) {
    const now = this.props;
    return ["lines", "words", "height", "current"].some((name) => now[name] !== next[name]);
  }

  /** @param {any} props */
  render({ page, lines, height, words, current }) {
    if (!lines) return html`<div class="log-page" data-page=${page} style=${{ height: `${height}px` }} />`;
    return html`<div class="log-page" data-page=${page}>
      ${lines.map((/** @type {any} */ line) => html`<${Line} key=${line.n} line=${line} words=${words}
        isCurrent=${line.n === current} />`)}
    </div>`;
  }
}

/** @param {{line: import("./logbook.js").Line, words: string, isCurrent: boolean}} props */
const Line = ({ line, words, isCurrent }) => html`
  <div class=${`line kind-${line.kind} ${isCurrent ? "is-current" : ""}`} data-line=${line.n}>
    <span class="line-time">${line.t ? clock(line.t) : ""}</span>
    <span class="said">${words ? marked(line.text, words) : line.text}</span>
  </div>`;

/** @param {string} text @param {string} words */
function marked(text, words) {
  const parts = [];
  const [low, wanted] = [text.toLowerCase(), words.toLowerCase()];
  let from = 0;
  for (let at = low.indexOf(wanted); at >= 0; at = low.indexOf(wanted, from)) {
    parts.push(text.slice(from, at), html`<mark>${text.slice(at, at + words.length)}</mark>`);
    from = at + words.length;
  }
  return [...parts, text.slice(from)];
}

