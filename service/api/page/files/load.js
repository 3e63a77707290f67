// Asks the service for what a state needs.

import { address } from "./api.js";
import { askedCapacities, askedTargets, partOf, signature } from "./answers.js";
import { resolveWindow } from "./windows.js";

/** Points of a drawn curve; each is exact, and the answer says how far a line between them may be off. */
export const CURVE_POINTS = 400;

/**
 * Asks at most once for each address, and not again for answers of the facts that were counted before.
 *
 * `kept` is the `kept` of the asker before, or an empty map.
 */
export function asker(ask, kept) {
  const asked = new Map();
  const keep = new Map();
  const fresh = (url) => {
    if (!asked.has(url)) asked.set(url, ask(url));
    return asked.get(url);
  };
  const ofFacts = async (url, facts) => {
    const had = kept.get(url) ?? keep.get(url);
    const answer = had?.facts === facts ? had.answer : await fresh(url);
    keep.set(url, { facts, answer });
    return answer;
  };
  return { fresh, ofFacts, kept: keep };
}

/**
 * The answers about the sides of a state: a list of {side, window, query, capacity, curve}; `curve` is null where the side
 * has no requests in its window. `slotsOf` gives an instance's configured capacities.
 */
export function loadSides(state, asking, slotsOf, now) {
  const sides = state.compare ? [state.shown, state.compare] : [state.shown];
  const slots = [...new Set(sides.flatMap((side) => slotsOf(side.instance)))];
  return Promise.all(sides.map((side) => loadSide(side, state, asking, slots, now)));
}

async function loadSide(side, state, asking, slots, now) {
  const window = resolveWindow(side, now);
  const about = [["from", window.from], ["to", window.to], ["block_bytes", state.blockBytes]];
  const capacities = askedCapacities(state, slots).map((gb) => ["capacity_gb", gb]);
  const query = await asking.fresh(address("query", [...capacities, ...about]));
  const facts = signature(query);
  const part = partOf(query, side.instance);
  const one = side.instance === "" ? [] : [["instance_id", side.instance]];
  const curve = [["points", CURVE_POINTS], ...one, ...about];
  const [capacity, curves] = await Promise.all([
    asking.ofFacts(address("capacity", [...askedTargets(state), ...about]), facts),
    part === null || part.requests === 0 ? null : asking.ofFacts(address("curve", curve), facts),
  ]);
  return { side, window, query, capacity, curve: curves };
}
