/** The address behind the #: which page is shown, and how to get to another. */
import { useEffect, useState } from "../vendor/preact-htm.js";

/**
 * @typedef {object} Route
 * @property {"runs" | "run" | "spending"} page
 * @property {string} run the run that is shown; of a worker's page, the worker's
 * @property {string} lead of a worker's page: the run that sent it
 * @property {string} tab
 * @property {string[]} rest what stands behind the tab
 */

/** @param {string} hash @returns {Route} */
export function routeOf(hash) {
  const [page, run = "", ...rest] = hash.replace(/^#\/?/, "").split("/").map(decode);
  if (page === "spending") return { page, run: "", lead: "", tab: "", rest: [] };
  if (page !== "run" || !run) return { page: "runs", run: "", lead: "", tab: "", rest: [] };
  if (rest[0] === "worker" && rest[1]) {
    return { page, run: rest[1], lead: run, tab: rest[2] || "", rest: rest.slice(3) };
  }
  return { page, run, lead: "", tab: rest[0] || "", rest: rest.slice(1) };
}

/** @param {...(string | number)} parts */
export const address = (...parts) => `#/${parts.map((part) => encodeURIComponent(part)).join("/")}`;

/** The address of a run's page, or of a part of it. @param {Route} route @param {...(string | number)} parts */
export function inRun(route, ...parts) {
  const base = route.lead ? ["run", route.lead, "worker", route.run] : ["run", route.run];
  return address(...base, ...parts);
}

/** @returns {Route} */
export function useRoute() {
  const [hash, setHash] = useState(location.hash);
  useEffect(() => {
    const changed = () => setHash(location.hash);
    addEventListener("hashchange", changed);
    return () => removeEventListener("hashchange", changed);
  }, []);
  return routeOf(hash);
}

/** @param {string} part */
function decode(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}
