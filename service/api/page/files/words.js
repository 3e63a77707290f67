// What the page says of the answers, as texts.

import { age, bytes, compact, count, enough, gigabytes, percent, points, signed } from "./format.js";
import { bothTimes, describeWindow, windowLabel } from "./windows.js";

const NOTHING = "–";

/** An instance's name, or what stands for all of them. */
export function modelName(instance) {
  return instance === "" ? "All models" : instance;
}

/** Names of one or two sides, by what they differ in. */
export function sideNames(sides) {
  const full = sides.map((side) => `${modelName(side.instance)}, ${windowName(side)}`);
  if (sides.length < 2) return full;
  const [a, b] = sides;
  if (windowName(a) === windowName(b)) return sides.map((side) => modelName(side.instance));
  return a.instance === b.instance ? sides.map(windowName) : full;
}

/** The answer in a sentence, around a figure that stands out: {before, figure, after}. */
export function headline(names, outcomes) {
  const [a, b] = outcomes;
  if (a === null) return { before: `${names[0]}: no requests`, figure: "", after: "" };
  const before = `${names[0]}:`;
  const at = `hit rate at ${gigabytes(a.capacity)}`;
  if (outcomes.length < 2) {
    return { before, figure: percent(a.rate), after: `${at}, ${percent(a.share)} of the ceiling` };
  }
  const other = b === null ? "no requests" : `${percent(b.rate)}, a difference of ${points(a.rate - b.rate)}`;
  return { before, figure: percent(a.rate), after: `${at}; ${names[1]}: ${other}` };
}

/** Rows of the table of figures: [label, shown] or [label, shown, compared with, difference]. */
export function figureRows(outcomes, targets, state) {
  const row = (label, write, value, difference) => {
    const cells = outcomes.map((one) => (one === null ? NOTHING : write(one)));
    if (outcomes.length < 2) return [label, ...cells];
    const [a, b] = outcomes;
    return [label, ...cells, a === null || b === null ? NOTHING : difference(value(a) - value(b))];
  };
  const more = (value) => signed(value, count);
  return [
    row(`Hit rate at ${gigabytes(state.capacity)}`, (one) => percent(one.rate), (one) => one.rate, points),
    row("Share of the ceiling", (one) => percent(one.share), (one) => one.share, points),
    row("Ceiling, at infinite capacity", (one) => percent(one.ceiling), (one) => one.ceiling, points),
    row("The next GB adds", (one) => points(one.nextGain), (one) => one.nextGain, points),
    row(`${gigabytes(state.more)} more add`, (one) => points(one.moreGain), (one) => one.moreGain, points),
    targetRow(outcomes, targets, state),
    row("Requests", (one) => count(one.requests), (one) => one.requests, more),
    row("Input tokens", (one) => compact(one.inputTokens), (one) => one.inputTokens, (value) => signed(value, compact)),
  ];
}

/** The capacity for a target, or why there is none. */
export function targetText(target) {
  if (target === null) return NOTHING;
  return target.reachable ? enough(target.capacity_gb) : "above its ceiling";
}

/** What a target is called. */
export function targetName(state) {
  return state.targetOf === "tokens" ? `A hit rate of ${state.target} %` : `${state.target} % of the ceiling`;
}

/** Which model gains most from `more` GB in the window shown, in a sentence. */
export function modelsSentence(rows, state) {
  const from = `${windowName(state.shown)}: ${gigabytes(state.more)} more than ${gigabytes(state.capacity)}`;
  // A variant is the same requests analysed otherwise, and no model that memory could be bought for.
  const [first, second] = rows.filter((row) => !row.isVariant);
  if (!first) return `${windowName(state.shown)}: no requests.`;
  if (first.outcome.moreGain === 0) return `${from} add nothing to any model.`;
  const best = `${from} add most to ${first.instance}: ${points(first.outcome.moreGain)}`;
  if (!second) return `${best}.`;
  return `${best}; next is ${second.instance}: ${points(second.outcome.moreGain)}.`;
}

/** Headings of the table of models. */
export function modelHeadings(state) {
  return [
    "Model", "Requests", "Ceiling", `Hit rate at ${gigabytes(state.capacity)}`, "Share of ceiling",
    `${gigabytes(state.more)} more add`, "in tokens", `${targetName(state)} needs`,
  ];
}

/** Cells of a model's row after its name. */
export function modelCells({ outcome, target }) {
  return [
    count(outcome.requests), percent(outcome.ceiling), percent(outcome.rate), percent(outcome.share),
    points(outcome.moreGain), signed(outcome.moreTokens, compact), targetText(target),
  ];
}

/** How true the lines of a drawn curve are, and what its marks mean. */
export function curveHint(curves, axis, slotsKnown) {
  const errors = curves.map((one) => (axis === "log" ? one.largest_error.rise_hit_rate : one.largest_error.hit_rate));
  const worst = Math.max(...errors, 0);
  const between =
    worst === 0
      ? "Every point is exact, and so is the line between."
      : `Every point is exact; between two points the line is off by ${(worst * 100).toPrecision(2)} points at most.`;
  const slots = slotsKnown
    ? "Dots: configured capacities."
    : "Configured capacities are not known here: the lanes run in another process.";
  return `${between} Diamonds: 90, 95 and 99 % of the ceiling. ${slots} Dashed across: the ceiling.`;
}

/** How many models are not drawn. */
export function leftOutText(models) {
  return models ? `${models} models with less traffic are not drawn: choose one above to see it.` : "";
}

/** What blocks were recorded with, in bytes. */
export function blockHint(charges) {
  if (charges.length === 0) return "";
  if (charges.length > 3) return `Recorded: ${charges.length} sizes, ${bytes(charges[0])} to ${bytes(charges.at(-1))}.`;
  return `Recorded: ${charges.map((one) => `${count(one)} (${bytes(one)})`).join(", ")}.`;
}

/**
 * What to do where there is no answer, or null: {level, text, action}; `action` is "all-time", "defaults" or null.
 *
 * `failure` is a CallFailed, `newest` the newest request that is counted at all.
 */
export function notice({ failure, refused, newest, empty, origin }) {
  if (failure !== null && failure.status === 0) {
    const text = `No answer from ${origin}. See whether litehit serve still runs there; this page tries again by itself.`;
    return { level: "bad", text, action: null };
  }
  if (failure !== null && failure.status === 503) {
    return { level: "wait", text: "The service is not ready yet. This page fills by itself when it is.", action: null };
  }
  if (failure !== null) return { level: "bad", text: failure.message, action: "defaults" };
  if (refused.length) {
    const text = `This address has parts that can't be used: ${refused.join(", ")}. The page shows its defaults instead.`;
    return { level: "wait", text, action: "defaults" };
  }
  if (empty && newest === null) {
    const text =
      "No facts yet. Publish requests, for example: litehit publish trace.jsonl --format native --embedded " +
      "(--bootstrap HOST:PORT on Kafka). This page fills by itself.";
    return { level: "wait", text, action: null };
  }
  if (empty) {
    const text = `No requests in this window. The newest request of any model is of ${bothTimes(newest)}.`;
    return { level: "wait", text, action: "all-time" };
  }
  return null;
}

function windowName(side) {
  if (side.window !== "custom") return windowLabel(side);
  return describeWindow({ from: side.from, to: side.to }).local;
}

function targetRow(outcomes, targets, state) {
  const cells = targets.map((target, at) => (outcomes[at] === null ? NOTHING : targetText(target)));
  const label = `${targetName(state)} needs`;
  if (targets.length < 2) return [label, ...cells];
  const known = outcomes.every((one) => one !== null) && targets.every((target) => target?.reachable);
  const difference = known ? targets[0].capacity_gb - targets[1].capacity_gb : null;
  return [label, ...cells, known ? signed(difference, (value) => gigabytes(Number(value.toPrecision(3)))) : NOTHING];
}

/** How much traffic there was. */
export function trafficSentence({ start, end, isAbout, perSecond }, requests) {
  const seconds = (end - start) / 1000;
  const span = `${isAbout ? "about " : ""}${age(seconds)}`;
  const mean = `${count(requests)} requests over ${span}, ${perSecondText(requests / seconds)} on average`;
  return perSecond === null ? `${mean}.` : `${mean}; ${perSecondText(perSecond)} in the last five minutes.`;
}

function perSecondText(value) {
  return `${Number(value.toPrecision(2))} a second`;
}
