/** The lines of a log as far as somebody looks at them: a window on what the server keeps. */
import { get, runPath } from "../api.js";

export const PAGE = 100; // lines in a page
const KEPT = 30; // pages
const AT_ONCE = 5; // pages in one request
const SOON = 500;
const AGAIN = 2000; // after so many milliseconds, if one failed

/** @typedef {{n: number, t: number | null, kind: string, text: string}} Line */

export class Logbook {
  /** @param {string} run */
  constructor(run) {
    this.run = run;
    this.total = 0;
    this.known = false; // whether the total was ever told
    /** @type {string[]} the kinds of lines that are wanted; none: all */
    this.kinds = [];
    this.epoch = 0; // grows when other lines are wanted
    this.timer = 0;
    /** @type {Map<number, Line[]>} */
    this.pages = new Map();
    /** @type {Set<number>} */
    this.asked = new Set();
    /** @type {Set<() => void>} */
    this.readers = new Set();
  }

  /** Call this after each change; gives what ends that. @param {() => void} reader */
  watch(reader) {
    this.readers.add(reader);
    return () => this.readers.delete(reader);
  }

  changed() {
    for (const reader of this.readers) reader();
  }

  get pageCount() {
    return Math.ceil(this.total / PAGE);
  }

  /** How many lines a page has. @param {number} page */
  linesIn(page) {
    return Math.min(PAGE, this.total - page * PAGE);
  }

  /** Want lines of these kinds only. @param {string[]} kinds */
  show(kinds) {
    if (kinds.join() === this.kinds.join()) return;
    this.kinds = kinds;
    this.epoch++;
    this.total = 0;
    this.known = false;
    this.pages.clear();
    this.asked.clear();
    this.changed();
    this.renew();
  }

  /** New lines at the end. Those before them that are not here are fetched when somebody looks.
   * @param {number} from @param {Line[]} lines */
  append(from, lines) {
    if (this.kinds.length) return this.renewSoon();
    lines.forEach((line, at) => {
      const page = Math.floor((from + at) / PAGE);
      const held = this.pages.get(page) || [];
      if (held.length === (from + at) % PAGE) this.pages.set(page, [...held, line]);
    });
    this.total = Math.max(this.total, from + lines.length);
    this.known = true;
    this.forget(this.pageCount - 1);
    this.changed();
  }

  /** Which of the new lines are wanted, the server knows. */
  renewSoon() {
    this.timer ||= setTimeout(() => {
      this.timer = 0;
      this.renew();
    }, SOON);
  }

  /** Ask how long the log is now. */
  renew() {
    return this.fetch(0, 1).catch(() => undefined);
  }

  /** See to it that these pages are here, or will be. @param {number} first @param {number} last */
  need(first, last) {
    /** @type {number[]} */
    let missing = [];
    for (let page = first; page <= last; page++) {
      const here = this.pages.get(page)?.length === this.linesIn(page) || this.asked.has(page);
      if (!here) missing.push(page);
      if (missing.length && (here || missing.length === AT_ONCE || page === last)) {
        this.fetchPages(missing, Math.floor((first + last) / 2));
        missing = [];
      }
    }
  }

  /** @param {number[]} pages in order, without a gap @param {number} middle of what is looked at */
  async fetchPages(pages, middle) {
    for (const page of pages) this.asked.add(page);
    try {
      const lines = await this.fetch(pages[0] * PAGE, pages.length * PAGE);
      pages.forEach((page, at) => {
        const part = lines.slice(at * PAGE, (at + 1) * PAGE);
        if (part.length > (this.pages.get(page)?.length || 0)) this.pages.set(page, part);
      });
      this.forget(middle);
    } catch {
      await new Promise((resolve) => setTimeout(resolve, AGAIN));
    }
    for (const page of pages) this.asked.delete(page);
    this.changed();
  }

  /** @param {number} from @param {number} limit @returns {Promise<Line[]>} */
  async fetch(from, limit) {
    const epoch = this.epoch;
    const kinds = this.kinds.length ? `&kinds=${this.kinds}` : "";
    const told = await get(runPath(this.run, `/log?from=${from}&limit=${limit}${kinds}`));
    if (epoch !== this.epoch) return [];
    this.total = Math.max(this.total, told.total);
    this.known = true;
    this.changed();
    return told.lines;
  }

  /** The numbers of the lines that hold a text. @param {string} text @returns {Promise<number[]>} */
  async find(text) {
    const told = await get(runPath(this.run, `/log?from=0&limit=1&q=${encodeURIComponent(text)}`));
    return told.matches;
  }

  /** Drop the pages that are farthest from the one that is looked at. @param {number} middle */
  forget(middle) {
    if (this.pages.size <= KEPT) return;
    const far = [...this.pages.keys()].sort((one, other) => Math.abs(other - middle) - Math.abs(one - middle));
    for (const page of far.slice(0, this.pages.size - KEPT)) this.pages.delete(page);
  }
}
