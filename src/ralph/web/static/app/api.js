/** What the server says, and what it is asked: JSON over HTTP. */

/** The printed token. It lives here and nowhere else: a reload forgets it. */
let token = "";

/** A refusal, with what to do about it. */
export class ApiError extends Error {
  /** @param {number} status @param {string} message @param {string} remedy */
  constructor(status, message, remedy) {
    super(message);
    this.status = status;
    this.remedy = remedy;
  }
}

/** Whether this page may ask for changes: reading takes the cookie, writing takes the token. */
export const canWrite = () => token !== "";

/** The token in a printed link, or the text itself if it is one. @param {string} text */
export function tokenIn(text) {
  const found = /[#&]token=([^&\s]+)/.exec(text);
  return found ? decodeURIComponent(found[1]) : text.trim();
}

/** Trade the token for a cookie. @param {string} given */
export async function login(given) {
  await answerOf(
    await reach("/api/login", { method: "POST", headers: { Authorization: `Bearer ${given}` } }),
  );
  token = given;
}

/** @param {string} path */
export async function get(path) {
  return answerOf(await reach(path, {}));
}

/** @param {string} path @param {object} [body] */
export async function post(path, body = {}) {
  const headers = { "Content-Type": "application/json", "X-Ralph-Token": token };
  return answerOf(await reach(path, { method: "POST", headers, body: JSON.stringify(body) }));
}

/** The address of what belongs to a run. @param {string} run @param {string} [rest] */
export const runPath = (run, rest = "") => `/api/runs/${encodeURIComponent(run)}${rest}`;

/** @param {string} path @param {RequestInit} options */
async function reach(path, options) {
  try {
    return await fetch(path, { credentials: "same-origin", cache: "no-store", ...options });
  } catch {
    throw new ApiError(0, "ralph web does not answer.", "Is it still running? Start it again: ralph web");
  }
}

/** @param {Response} response */
async function answerOf(response) {
  if (response.status === 204) return null;
  const told = await response.json().catch(() => ({}));
  if (response.ok) return told;
  throw new ApiError(
    response.status,
    told.error || `ralph web answered ${response.status}.`,
    told.remedy || "",
  );
}
