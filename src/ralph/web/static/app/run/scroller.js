/** Decides which pages of a log are drawn, and keeps what is looked at in its place. */
import { PAGE } from "./logbook.js";

const AROUND = 800; // pixels that are drawn above and below the window
const LINE = 20; // pixels of a line that nobody has drawn yet
const AT_END = 24;

/** @typedef {{first: number, last: number, top: number, bottom: number}} View */

export class Scroller {
  /**
   * @param {HTMLElement} box
   * @param {import("./logbook.js").Logbook} log
   * @param {(view: View) => void} show
   * @param {(follow: boolean) => void} followed
   */
  constructor(box, log, show, followed) {
    this.box = box;
    this.log = log;
    this.show = show;
    this.followed = followed;
    /** @type {Map<number, number>} pages whose height was seen */
    this.heights = new Map();
    this.following = false;
    this.anchor = { page: 0, offset: 0 };
    this.target = -1; // a line to go to, once it is there
    this.last = 0; // where the box stood
    this.epoch = log.epoch;
    this.onScroll = () => this.scrolled();
    box.addEventListener("scroll", this.onScroll, { passive: true });
    this.width = box.clientWidth;
    this.resizing = new ResizeObserver(() => this.resized());
    this.resizing.observe(box);
  }

  close() {
    this.box.removeEventListener("scroll", this.onScroll);
    this.resizing.disconnect();
  }

  /** @param {number} page */
  heightOf(page) {
    return this.heights.get(page) ?? this.log.linesIn(page) * LINE;
  }

  /** @param {boolean} on */
  follow(on) {
    this.following = on;
    this.followed(on);
    if (on) this.anchor = { page: Math.max(this.log.pageCount - 1, 0), offset: 0 };
    this.changed();
  }

  /** @param {number} line */
  goTo(line) {
    this.following = false;
    this.followed(false);
    this.target = line;
    this.box.scrollIntoView({ block: "nearest" });
    this.anchor = { page: Math.floor(line / PAGE), offset: 0 };
    this.changed();
  }

  /** The log has grown, or something else is wanted: say what is to be drawn. */
  changed() {
    const { log, box } = this;
    if (this.epoch !== log.epoch) this.heights.clear();
    this.epoch = log.epoch;
    const count = log.pageCount;
    if (this.following) this.anchor = { page: Math.max(count - 1, 0), offset: this.heightOf(count - 1) };
    let first = Math.min(this.anchor.page, Math.max(count - 1, 0));
    let above = this.anchor.offset;
    while (first > 0 && above < AROUND + (this.following ? box.clientHeight : 0)) above += this.heightOf(--first);
    let last = this.anchor.page;
    let below = this.heightOf(last) - this.anchor.offset;
    while (last < count - 1 && below < box.clientHeight + AROUND) below += this.heightOf(++last);
    log.need(first, Math.min(last, count - 1));
    const view = { first, last, top: this.sum(0, first), bottom: this.sum(last + 1, count) };
    this.show(view);
  }

  /** @param {number} from @param {number} to */
  sum(from, to) {
    let sum = 0;
    for (let page = from; page < to; page++) sum += this.heightOf(page);
    return sum;
  }

  /** The pages were drawn: learn their heights, and stay where we were. */
  settle() {
    const { box } = this;
    let grew = false;
    for (const drawn of box.querySelectorAll(".log-page")) {
      const page = Number(/** @type {HTMLElement} */ (drawn).dataset.page);
      const height = drawn.getBoundingClientRect().height;
      if (!this.log.pages.has(page) || Math.abs(this.heightOf(page) - height) < 1) continue;
      this.heights.set(page, height);
      grew = true;
    }
    const place = this.place();
    if (place !== null && Math.abs(box.scrollTop - place) > 1) box.scrollTop = place;
    if (grew) this.changed();
  }

  /** Where the box has to stand, if we know. */
  place() {
    const { box } = this;
    if (this.following) return box.scrollHeight - box.clientHeight;
    const line = this.target < 0 ? null : box.querySelector(`[data-line="${this.target}"]`);
    if (line) {
      this.target = -1;
      const place = Math.max(this.topOf(line) - box.clientHeight / 2, 0);
      this.anchor = this.anchorAt(place);
      return place;
    }
    const page = box.querySelector(`[data-page="${this.anchor.page}"]`);
    return page && this.topOf(page) + this.anchor.offset;
  }

  /** How far below the first line something begins. @param {Element} part */
  topOf(part) {
    return part.getBoundingClientRect().top - this.box.getBoundingClientRect().top + this.box.scrollTop;
  }

  scrolled() {
    const { box } = this;
    const atEnd = box.scrollHeight - box.clientHeight - box.scrollTop < AT_END;
    const down = box.scrollTop > this.last;
    this.last = box.scrollTop;
    if (!this.following && atEnd && down) return this.follow(true);
    if (this.following && (atEnd || down)) return;
    this.following = false;
    this.followed(false);
    this.anchor = this.anchorAt(box.scrollTop);
    this.changed();
  }

  /** The page at a height, and how far in it that is. @param {number} top */
  anchorAt(top) {
    let page = 0;
    let left = top;
    while (page < this.log.pageCount - 1 && left >= this.heightOf(page)) left -= this.heightOf(page++);
    return { page, offset: left };
  }

  /** Lines break elsewhere now: no height holds. */
  resized() {
    if (this.box.clientWidth === this.width) return this.settle();
    this.width = this.box.clientWidth;
    this.heights.clear();
    this.changed();
  }
}
