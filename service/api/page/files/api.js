// Calls of the service.

const ANSWER_MS = 30_000;
const STATUS_MS = 10_000; // which the service answers while it is busy

/** A call that gave no answer: `status` is 0 where the service was not reached at all. */
export class CallFailed extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

/** The address of a call, relative to the page, so that a proxy may put both below a path. */
export function address(call, pairs = []) {
  const query = new URLSearchParams(pairs.filter(([, value]) => value !== null && value !== undefined));
  const text = query.toString();
  return text ? `${call}?${text}` : call;
}

/** The JSON of an answer; a problem document becomes a CallFailed with its sentence. */
export async function ask(url) {
  const response = await reach(url, ANSWER_MS);
  const body = parsed(response.text);
  if (!response.ok) {
    throw new CallFailed(response.status, body?.detail ?? `${url} answered ${response.status}`);
  }
  if (body === null) throw new CallFailed(response.status, `${url} answered something else than JSON`);
  return body;
}

/** What /readyz says, whether ready or not. */
export async function askReadiness() {
  const response = await reach("readyz", STATUS_MS);
  const body = parsed(response.text);
  if (typeof body?.ready !== "boolean") throw new CallFailed(response.status, `readyz answered ${response.status}`);
  return body;
}

/** The text of /metrics. */
export async function askMetrics() {
  const response = await reach("metrics", STATUS_MS);
  if (!response.ok) throw new CallFailed(response.status, `metrics answered ${response.status}`);
  return response.text;
}

// A host that is gone, or a process that hangs, would else be waited for without end.
async function reach(url, patience) {
  const controller = new AbortController();
  const timer = setTimeout(() => controller.abort(), patience);
  try {
    const response = await fetch(url, { cache: "no-cache", signal: controller.signal });
    return { ok: response.ok, status: response.status, text: await response.text() };
  } catch {
    throw new CallFailed(0, "the service does not answer");
  } finally {
    clearTimeout(timer);
  }
}

// The JSON of a text; null for any other text.
function parsed(text) {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}
