/** A run, followed: its recap, kept up to date, and the book of its log. */
import { useEffect, useRef, useState } from "../../vendor/preact-htm.js";
import { get, runPath } from "../api.js";
import { Live } from "../live.js";
import { Logbook } from "./logbook.js";

/** @param {string} run @param {{refused: () => void, setLink: (state: string) => void}} page */
export function useRun(run, { refused, setLink }) {
  const [recap, setRecap] = useState(/** @type {any} */ (null));
  const [error, setError] = useState(/** @type {any} */ (null));
  const book = useRef(/** @type {Logbook | null} */ (null));
  book.current ||= new Logbook(run);
  const log = book.current;

  useEffect(() => {
    const load = () => get(runPath(run)).then(setRecap, (caught) => {
      setError(caught);
      if (caught.status !== 404) return;
      live.close(); // there is no such run, and nothing to come back to
      setLink("");
    });
    const live = new Live(runPath(run, "/events"), ["fact", "lines", "recap", "ended"], {
      told: (events) => {
        for (const { name, data } of events) if (name === "lines") log.append(data.from, data.lines);
        const told = events.filter((event) => event.name === "recap").pop();
        if (told) setRecap((/** @type {any} */ old) => renewed(old, told.data));
        if (events.some((event) => event.name === "ended")) load();
      },
      state: (state) => {
        setLink(state);
        if (state === "live") log.renew();
      },
      refused,
    });
    load();
    return () => live.close();
  }, [run]);
  return { recap, error, log };
}

/** A recap that came without its iterations, but for the last. @param {any} old @param {any} told */
export function renewed(old, told) {
  if (!old) return old; // the whole one is under way
  const known = new Map(old.iterations.map((/** @type {any} */ one) => [keyOf(one), one]));
  for (const one of told.iterations) known.set(keyOf(one), one);
  return { ...told, iterations: [...known.values()] };
}

/** @param {any} iteration */
export const keyOf = (iteration) => `${iteration.worker}:${iteration.number}`;
