/** A stream of events that comes back by itself, at the position where it broke off. */

const SOONEST = 1000;
const LATEST = 10_000;
const UNSEEN = 60_000; // a page that nobody has seen for so long lets go of its connection,
const LOOKS_IN = 20_000; // and looks in as often as this,
const STAYS = 1500; // for as long as this
const AT_LATEST = 250; // a hidden page has no frames
const ASLEEP = 20_000; // a clock that jumped so far was stopped: the machine slept

/**
 * @typedef {object} Told
 * @property {string} name
 * @property {any} data
 */

export class Live {
  /**
   * @param {string} url
   * @param {string[]} names of the events to hear
   * @param {{told: (events: Told[]) => void, state: (state: "live" | "reconnecting") => void,
   *          refused: () => void}} heard events come in batches, one for each frame
   */
  constructor(url, names, heard) {
    this.url = url;
    this.names = names;
    this.heard = heard;
    this.position = "";
    this.wait = SOONEST;
    this.closed = false;
    /** @type {Told[]} */
    this.batch = [];
    this.onReturn = () => this.lookAgain();
    addEventListener("online", this.onReturn);
    addEventListener("offline", this.onReturn);
    document.addEventListener("visibilitychange", this.onReturn);
    this.awake = Date.now();
    this.seen = this.awake;
    this.rests = false;
    this.ticker = setInterval(() => this.tick(), 2000);
    this.open();
  }

  open() {
    const after = this.position ? `?after=${encodeURIComponent(this.position)}` : "";
    const source = new EventSource(this.url + after);
    this.source = source;
    source.onopen = () => {
      this.wait = SOONEST;
      this.heard.state("live");
      if (this.rests) this.letGo(STAYS);
    };
    source.onerror = () => {
      this.heard.state("reconnecting");
      if (source.readyState === EventSource.CLOSED) this.later();
    };
    for (const name of this.names) {
      source.addEventListener(name, (event) => this.take(name, /** @type {MessageEvent} */ (event)));
    }
  }

  /** @param {string} name @param {MessageEvent} event */
  take(name, event) {
    if (event.lastEventId) this.position = event.lastEventId;
    this.batch.push({ name, data: JSON.parse(event.data) });
    if (this.batch.length > 1) return;
    requestAnimationFrame(() => this.tell());
    setTimeout(() => this.tell(), AT_LATEST);
  }

  tell() {
    const events = this.batch;
    this.batch = [];
    if (!this.closed && events.length) this.heard.told(events);
  }

  /** The server refused, or is gone: the browser gives up then, and we do not. */
  later() {
    this.source?.close();
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.again(), this.wait);
    this.wait = Math.min(this.wait * 2, LATEST);
  }

  async again() {
    if (this.closed) return;
    const asked = await fetch("/api/me", { cache: "no-store" }).catch(() => null);
    if (this.closed) return;
    if (asked?.status === 401) return this.heard.refused();
    if (asked?.ok) this.open();
    else this.later();
  }

  /** Connections do not notice that the machine slept, or changed its network. */
  tick() {
    const now = Date.now();
    const slept = now - this.awake > ASLEEP && !document.hidden;
    this.awake = now;
    if (!document.hidden) this.seen = now;
    if (slept) this.reopen();
    if (this.rests || now - this.seen < UNSEEN) return;
    this.rests = true;
    this.letGo(0);
  }

  /** A browser has six connections to a server for all of its tabs: those in the background take
   * turns, so that the next tab gets one. @param {number} after milliseconds */
  letGo(after) {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => {
      this.source?.close();
      this.timer = setTimeout(() => this.open(), LOOKS_IN);
    }, after);
  }

  lookAgain() {
    if (!document.hidden) {
      this.seen = Date.now();
      this.rests = false;
    }
    if (!navigator.onLine) this.heard.state("reconnecting");
    else if (!document.hidden && this.source?.readyState !== EventSource.OPEN) this.reopen();
  }

  reopen() {
    this.heard.state("reconnecting");
    this.source?.close();
    clearTimeout(this.timer);
    this.open();
  }

  close() {
    this.closed = true;
    this.source?.close();
    clearTimeout(this.timer);
    clearInterval(this.ticker);
    removeEventListener("online", this.onReturn);
    removeEventListener("offline", this.onReturn);
    document.removeEventListener("visibilitychange", this.onReturn);
  }
}
