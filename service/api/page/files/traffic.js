// Requests over time: the windows to ask for.

const SECOND = 1_000;
const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

/** Widths of a bucket, in ms; whole hours where there are many requests to sum. */
const WIDTHS = [MINUTE, 5 * MINUTE, 15 * MINUTE, HOUR, 3 * HOUR, 6 * HOUR, DAY, 7 * DAY, 30 * DAY, 365 * DAY];
const MOST = 31;

/** Spans to try for a window without a start, in ms, shortest first; then all time since 1970, where many traces lie. */
export const SPANS = [HOUR, DAY, 7 * DAY, 30 * DAY, 365 * DAY, 10 * 365 * DAY];

/**
 * Buckets {start, end} in ms that cover [start, end): of one width, at most 31, the last cut off at the end. They stand on
 * whole widths of the reader's clock, so that a day is a day.
 */
export function bucketsOf(start, end) {
  const width = WIDTHS.find((one) => (end - start) / one <= MOST - 1) ?? Math.ceil((end - start) / (MOST - 1));
  const shift = new Date(start).getTimezoneOffset() * MINUTE;
  const buckets = [];
  let at = Math.floor((start - shift) / width) * width + shift;
  for (; at < end; at += width) buckets.push({ start: Math.max(at, start), end: Math.min(at + width, end) });
  return buckets;
}

/** Requests a second over a span in ms. */
export function ratePerSecond(requests, milliseconds) {
  return milliseconds > 0 ? requests / (milliseconds / 1000) : 0;
}

/**
 * Requests over time of a window: {start, end, isAbout, buckets: [{start, end, requests, rate, ceiling}], perSecond}; null
 * without requests. `isAbout`: the window has no start, so that the first request's and the last one's times are found only
 * to about a sixteenth. `perSecond` is over the last five minutes, null for a window that has ended.
 *
 * `askPart(from, to)` gives a summary of /query at one capacity in [from, to), ISO times, null where open.
 */
export async function loadTraffic({ window, newest, requests, now, askPart }) {
  if (newest === null || requests === 0) return null;
  const latest = Date.parse(newest) + 1;
  // Of all time the last request is the end, for a trace may be old; else a window goes on without one.
  const last = window.from === null ? latest : Math.max(latest, now);
  const limit = window.to === null ? last : Math.min(Date.parse(window.to), last);
  const isAbout = window.from === null;
  const { start, end } = isAbout
    ? await extent(limit, requests, window, askPart)
    : { start: Date.parse(window.from), end: limit };
  if (!(start < end)) return null;
  const spans = bucketsOf(start, end);
  const parts = await inPairs(spans, (span, at) =>
    // The last bucket ends as the window does: its end was cut to the millisecond.
    askPart(iso(span.start), at === spans.length - 1 && end === limit ? window.to : iso(span.end)),
  );
  const buckets = spans.map((span, at) => ({
    ...span,
    requests: parts[at]?.requests ?? 0,
    rate: parts[at]?.hit_rates[0] ?? 0,
    ceiling: parts[at]?.ceiling.hit_rate ?? 0,
  }));
  const recent = 5 * MINUTE;
  const lately = window.to === null ? await askPart(iso(Math.floor((now - recent) / 1000) * 1000), null) : undefined;
  return { start, end, isAbout, buckets, perSecond: lately === undefined ? null : ratePerSecond(lately?.requests ?? 0, recent) };
}

// From before the first request to behind the last, each by a sixteenth of the whole at most. The last of all models, at
// which the search begins, may be long after that of the one that is looked at.
async function extent(limit, requests, window, askPart) {
  const countFrom = async (time) => (await askPart(iso(time), window.to))?.requests ?? 0;
  // More may have come since they were counted.
  const holdsAll = async (time) => (await countFrom(time)) >= requests;
  const holdsAny = async (time) => (await countFrom(time)) > 0;
  let end = limit;
  let start = await firstSpan(end, holdsAll);
  for (;;) {
    [start] = await halved(start, end, holdsAll, (low, high) => high - low <= tolerance(low, end));
    const late = end - tolerance(start, end);
    if (late <= start || (await holdsAny(late))) return { start, end };
    [, end] = await halved(start, late, holdsAny, (low, high) => high - low <= tolerance(start, high));
  }
}

async function firstSpan(end, holdsAll) {
  for (const one of SPANS) {
    if (await holdsAll(end - one)) return end - one;
  }
  return Math.min(0, end - SPANS[SPANS.length - 1]);
}

// [low, high] brought together, by halves, until they are close: `holds` does at the one, and does not at the other.
async function halved(low, high, holds, isClose) {
  while (!isClose(low, high)) {
    const middle = Math.floor((low + high) / 2);
    if (await holds(middle)) low = middle;
    else high = middle;
  }
  return [low, high];
}

function tolerance(start, end) {
  return Math.max((end - start) / 16, 2 * SECOND);
}

// Two calls at a time: a window that cuts history costs the service more than others, and it takes few of them at once.
async function inPairs(items, call) {
  const results = new Array(items.length);
  let next = 0;
  const work = async () => {
    while (next < items.length) {
      const at = next++;
      results[at] = await call(items[at], at);
    }
  };
  await Promise.all([work(), work()]);
  return results;
}

function iso(milliseconds) {
  return new Date(milliseconds).toISOString();
}
