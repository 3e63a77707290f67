// What the page shows, and how it is written into the address.
//
// A side is an instance ("" = all of them) over a window of time. `compare` is a second side, or null.

import { PRESETS } from "./windows.js";

export const DEFAULTS = Object.freeze({
  shown: Object.freeze({ instance: "", window: "all", from: null, to: null }),
  compare: null,
  capacity: 64,
  more: 100,
  target: 95,
  targetOf: "ceiling",
  blockBytes: null,
  axis: "log",
});

const TARGETS_OF = ["ceiling", "tokens"];
const AXES = ["log", "linear"];

/** The state that a query string carries, and the parts of it that could not be used. */
export function readState(search) {
  const given = new URLSearchParams(search);
  const refused = [];
  const take = (name, fallback, parse) => {
    const text = given.get(name);
    if (text === null) return fallback;
    const value = parse(text);
    if (value === undefined) refused.push(`${name}=${text}`);
    return value === undefined ? fallback : value;
  };
  const side = (prefix, fallback) => ({
    instance: take(`${prefix}instance`, fallback.instance, (text) => text),
    window: take(`${prefix}window`, fallback.window, oneOf(PRESETS.map((preset) => preset.id))),
    from: take(`${prefix}from`, null, instant),
    to: take(`${prefix}to`, null, instant),
  });
  const shown = side("", DEFAULTS.shown);
  const state = {
    shown,
    compare: given.has("vs_window") ? side("vs_", DEFAULTS.shown) : null,
    capacity: take("gb", DEFAULTS.capacity, capacity),
    more: take("more", DEFAULTS.more, positive),
    target: take("target", DEFAULTS.target, percentage),
    targetOf: take("target_of", DEFAULTS.targetOf, oneOf(TARGETS_OF)),
    blockBytes: take("block_bytes", DEFAULTS.blockBytes, wholeBytes),
    axis: take("axis", DEFAULTS.axis, oneOf(AXES)),
  };
  return { state, refused };
}

/** The query string of a state, starting with "?"; what is as by default is left out. */
export function writeState(state) {
  const pairs = new URLSearchParams();
  const put = (name, value, fallback) => {
    if (value !== null && value !== fallback) pairs.set(name, value);
  };
  const side = (prefix, one, window) => {
    put(`${prefix}instance`, one.instance, "");
    put(`${prefix}window`, one.window, window);
    if (one.window === "custom") {
      put(`${prefix}from`, one.from, null);
      put(`${prefix}to`, one.to, null);
    }
  };
  side("", state.shown, DEFAULTS.shown.window);
  if (state.compare) side("vs_", state.compare, null);
  put("gb", state.capacity, null);
  put("more", state.more, DEFAULTS.more);
  put("target", state.target, DEFAULTS.target);
  put("target_of", state.targetOf, DEFAULTS.targetOf);
  put("block_bytes", state.blockBytes, null);
  put("axis", state.axis, DEFAULTS.axis);
  return `?${pairs}`;
}

/** The side to compare with at first: the day before yesterday beside yesterday, else the next instance. */
export function counterpart(shown, instances) {
  if (shown.window === "yesterday") return { ...shown, window: "before" };
  if (shown.window === "today") return { ...shown, window: "yesterday" };
  const others = instances.filter((id) => id !== shown.instance);
  if (shown.instance !== "" && others.length) return { ...shown, instance: others[0] };
  return { ...shown, window: shown.window === "day" ? "yesterday" : "day", from: null, to: null };
}

/** A capacity in GB from 0; undefined for any other text. */
export function capacity(text) {
  const value = finite(text);
  return value !== undefined && value >= 0 ? value : undefined;
}

/** A number above 0; undefined for any other text. */
export function positive(text) {
  const value = finite(text);
  return value !== undefined && value > 0 ? value : undefined;
}

/** A percentage above 0 and up to 100; undefined for any other text. */
export function percentage(text) {
  const value = positive(text);
  return value !== undefined && value <= 100 ? value : undefined;
}

/** A whole number of bytes from 1; undefined for any other text. */
export function wholeBytes(text) {
  const value = positive(text);
  return Number.isSafeInteger(value) ? value : undefined;
}

function finite(text) {
  const value = text.trim() === "" ? NaN : Number(text);
  return Number.isFinite(value) ? value : undefined;
}

const RFC_3339 = /^\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]\d\d:\d\d)$/;

// Kept as it is written: the service is exact to the nanosecond, a Date is not. What a Date reads beside that, the service
// takes for something else: a year for nanoseconds.
function instant(text) {
  return RFC_3339.test(text) && !Number.isNaN(Date.parse(text)) ? text : undefined;
}

function oneOf(allowed) {
  return (text) => (allowed.includes(text) ? text : undefined);
}
