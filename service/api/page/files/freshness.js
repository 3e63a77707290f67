// Whether the numbers are up to date, in words.

import { age, count } from "./format.js";
import { bothTimes } from "./windows.js";

/**
 * What to say of the numbers shown.
 *
 * `failure` is why the last refresh failed, null if it did not; `answeredAt` when numbers last came, null if never.
 * `level` is one of good, behind, bad, wait.
 */
export function freshness(about) {
  const { failure, answeredAt, readiness, newest, factsBehind, requestsBehind, unreadable, missing, now } = about;
  if (failure !== null) {
    const since = answeredAt === null ? "" : `; the numbers are ${age((now - answeredAt) / 1000)} old`;
    return { level: "bad", text: `Not up to date: ${failure}${since}. Trying again.` };
  }
  if (readiness === null) return { level: "wait", text: "Asking the service…" };
  if (!readiness.ready) {
    const [first, ...others] = readiness.waiting;
    const more = others.length ? ` (and ${others.length} more, below)` : "";
    return { level: "wait", text: `Not ready: ${first.detail}${more}` };
  }
  if (unreadable.length) {
    return { level: "bad", text: `Not whole: ${several(unreadable.length, "file")} of the store can't be read (Status says what to do)` };
  }
  if (answeredAt === null) return { level: "wait", text: "Ready; no answer yet" };
  if (newest === null) return { level: "wait", text: "Ready; no facts yet" };
  const holes = missing.length ? `facts are missing at ${offsets(missing)} (Status says which); ` : "";
  const last = `${holes}newest request ${age((now - Date.parse(newest)) / 1000)} ago`;
  const behind = (factsBehind ?? 0) + (requestsBehind ?? 0);
  if (behind > 0) return { level: "behind", text: `${count(behind)} records behind, catching up; ${last}` };
  const level = missing.length ? "behind" : "good";
  return { level, text: `${factsBehind === null ? "Level with the store" : "Up to date"}; ${last}` };
}

/** The same in detail: a list of [term, sentence]. */
export function freshnessDetails({ readiness, newest, factsBehind, requestsBehind, unreadable, missing, deadLetters }) {
  const waiting = readiness === null || readiness.ready ? [] : readiness.waiting;
  return [
    ["Service", waiting.length ? waiting.map((one) => `${one.component}: ${one.detail}`).join("; ") : "ready"],
    ["Newest request counted", newest === null ? "none" : bothTimes(newest)],
    [
      "Requests not yet processed",
      requestsBehind === null ? "not known here: the lanes run in another process" : count(requestsBehind),
    ],
    [
      "Facts not yet counted",
      factsBehind === null
        ? "not known here: this process follows the store, where facts arrive a minute after their request at most, " +
          "as it is set by default"
        : count(factsBehind),
    ],
    [
      "Dead letters since the start",
      deadLetters === null
        ? "not known here: the lanes run in another process"
        : deadLetters === 0
          ? "0"
          : `${count(deadLetters)}: these records count nowhere; litehit dead-letters show says why`,
    ],
    [
      "Files that can't be read",
      unreadable.length
        ? `${count(unreadable.length)}: what they hold is not counted, and how much that is is unknown. Copy them back ` +
          "from a backup, or restart the service that archives: it archives again what the topic still holds. " +
          unreadable.join("; ")
        : "none",
    ],
    [
      "Facts missing in between",
      missing.length
        ? `at ${offsets(missing)}: they expired before they were archived, or their file was removed; where a backup has ` +
          `it, copy it back. ${missing.map((one) => `Partition ${one.partition}: ${one.from} to ${one.to - 1}`).join("; ")}`
        : "none",
    ],
  ];
}

function offsets(missing) {
  const sum = missing.reduce((before, one) => before + one.to - one.from, 0);
  return several(sum, "offset");
}

function several(number, noun) {
  return number === 1 ? `1 ${noun}` : `${count(number)} ${noun}s`;
}
