// Calls of the service.

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
  const response = await reach(url);
  const body = await response.json().catch(() => null);
  if (!response.ok) {
    throw new CallFailed(response.status, body?.detail ?? `${url} answered ${response.status}`);
  }
  return body;
}

/** What /readyz says, whether ready or not. */
export async function askReadiness() {
  const response = await reach("readyz");
  const body = await response.json().catch(() => null);
  if (typeof body?.ready !== "boolean") throw new CallFailed(response.status, `readyz answered ${response.status}`);
  return body;
}

/** The text of /metrics. */
export async function askMetrics() {
  const response = await reach("metrics");
  if (!response.ok) throw new CallFailed(response.status, `metrics answered ${response.status}`);
  return response.text();
}

async function reach(url) {
  try {
    return await fetch(url, { cache: "no-cache" });
  } catch {
    throw new CallFailed(0, "the service does not answer");
  }
}
