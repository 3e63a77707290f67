// Windows of time: by the reader's own clock and calendar, sent to the service in UTC.

export const PRESETS = Object.freeze([
  { id: "all", label: "All time" },
  { id: "hour", label: "Last hour" },
  { id: "day", label: "Last 24 hours" },
  { id: "week", label: "Last 7 days" },
  { id: "today", label: "Today" },
  { id: "yesterday", label: "Yesterday" },
  { id: "before", label: "Day before yesterday" },
  { id: "custom", label: "Between two times" },
]);

const MINUTE = 60_000;
const ROLLING = { hour: 60 * MINUTE, day: 24 * 60 * MINUTE, week: 7 * 24 * 60 * MINUTE };
const CALENDAR = { today: 0, yesterday: 1, before: 2 };

/**
 * A side's window at an instant: `from` and `to` in RFC 3339, null where open.
 *
 * A rolling one starts on a whole minute, so that asking again within it is the same question.
 */
export function resolveWindow(side, now) {
  if (side.window === "custom") return { from: side.from, to: side.to };
  if (side.window in ROLLING) {
    const start = Math.floor((now.getTime() - ROLLING[side.window]) / MINUTE) * MINUTE;
    return { from: new Date(start).toISOString(), to: null };
  }
  if (side.window in CALENDAR) {
    const back = CALENDAR[side.window];
    return { from: midnight(now, -back).toISOString(), to: midnight(now, 1 - back).toISOString() };
  }
  return { from: null, to: null };
}

/** The name of a side's window. */
export function windowLabel(side) {
  return PRESETS.find((preset) => preset.id === side.window).label;
}

/** A window in words, once by the reader's clock and once in UTC. */
export function describeWindow({ from, to }) {
  if (from === null && to === null) return { local: "every request", utc: "" };
  const say = (write) => {
    if (to === null) return `from ${write(from)}`;
    return from === null ? `until ${write(to)}` : `${write(from)} to ${write(to)}`;
  };
  return { local: say(localTime), utc: say(utcTime) };
}

/** Date and time by the reader's clock. */
export function localTime(iso) {
  return new Intl.DateTimeFormat("en-GB", { dateStyle: "medium", timeStyle: "medium" }).format(new Date(iso));
}

/** Date and time in UTC, to the second. */
export function utcTime(iso) {
  return `${new Date(iso).toISOString().slice(0, 19).replace("T", " ")} UTC`;
}

/** A time by the reader's clock and in UTC. */
export function bothTimes(iso) {
  return `${localTime(iso)} (${utcTime(iso)})`;
}

/** An RFC 3339 time as a `datetime-local` field writes it, to the second and no longer than need be; "" for null. */
export function toField(iso) {
  if (iso === null) return "";
  const date = new Date(iso);
  const shifted = new Date(date.getTime() - date.getTimezoneOffset() * MINUTE);
  return shifted.toISOString().slice(0, 19).replace(/:00$/, "");
}

/** What a `datetime-local` field holds as RFC 3339 in UTC; null for "". */
export function fromField(text) {
  return text === "" ? null : new Date(text).toISOString();
}

function midnight(now, days) {
  return new Date(now.getFullYear(), now.getMonth(), now.getDate() + days);
}
