// Talking to the server: JSON, numbers, and jobs that are followed until they end.

import { say, spokenLanguage } from "/assets/page/languages.js";

const POLL_WAIT = 15;
const POLL_PAUSE = 120;

/** An answer that is an error. */
export class ServerError extends Error {
  constructor(status, text) {
    super(text);
    this.status = status;
  }
}

async function answerTo(path, options = {}) {
  const headers = { "Accept-Language": spokenLanguage(), ...options.headers };
  const answer = await fetch(path, { credentials: "same-origin", ...options, headers }).catch((error) => {
    // Browsers have their own messages, in their own language.
    throw error instanceof TypeError ? new ServerError(0, say("app.offline")) : error;
  });
  if (answer.ok) return answer;
  const said = await answer.json().catch(() => ({}));
  throw new ServerError(answer.status, said.error ?? `${answer.status}`);
}

/** The JSON at a path. */
export async function getJson(path, options = {}) {
  return (await answerTo(path, options)).json();
}

/** The text at a path. */
export async function getText(path, signal) {
  return (await answerTo(path, { signal })).text();
}

/** The JSON that answers a post. */
export async function postJson(path, body) {
  return (
    await answerTo(path, {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify(body),
    })
  ).json();
}

/** Numbers at a path: { rows, columns, values }; with margins also the greatest size. */
export async function getNumbers(path, signal) {
  const answer = await answerTo(path, { signal });
  const values = new Float32Array(await answer.arrayBuffer());
  return {
    rows: Number(answer.headers.get("x-regard-rows")),
    columns: Number(answer.headers.get("x-regard-columns")),
    greatest: Number(answer.headers.get("x-regard-greatest")),
    values,
  };
}

/** Follows a job to its end; `onProgress(job)` is called at every step. Leaving the page ends the job. */
export async function followJob(job, onProgress, signal) {
  const path = `/api/jobs/${job.id}`;
  const leave = () => fetch(path, { method: "DELETE", keepalive: true }).catch(() => {});
  window.addEventListener("pagehide", leave);
  signal?.addEventListener("abort", leave);
  try {
    let now = job;
    while (now.state === "waiting" || now.state === "running") {
      onProgress(now);
      await new Promise((resolve) => setTimeout(resolve, POLL_PAUSE));
      signal?.throwIfAborted();
      now = await getJson(`${path}?after=${now.version}&wait=${POLL_WAIT}`, { signal });
    }
    onProgress(now);
    if (now.state !== "done") throw new ServerError(0, now.error ?? now.state);
    return now.result;
  } finally {
    window.removeEventListener("pagehide", leave);
    signal?.removeEventListener("abort", leave);
  }
}
