// From the service's answers to what the page says. Every number is the service's own, but for differences of two.

/** Shares of the ceiling that are marked on a curve. */
export const MARKED = Object.freeze([0.9, 0.95, 0.99]);

/** Capacities to ask /query for: the chosen one, `more` GB above it, then the configured slots. */
export function askedCapacities(state, slots) {
  return [state.capacity, state.capacity + state.more, ...slots];
}

/** Parameters of /capacity: the target of a state and the shares that are marked. */
export function askedTargets(state) {
  // 99.9 / 100 is no decimal of few digits, and the service takes decimals as they are written.
  const wanted = Number((state.target / 100).toPrecision(12));
  const marked = MARKED.map((share) => ["of_ceiling", share]);
  return state.targetOf === "tokens" ? [["hit_rate", wanted], ...marked] : [...marked, ["of_ceiling", wanted]];
}

/** The same parts of an answer of /capacity: {target, marks}; null for null. */
export function targets(part, state) {
  if (part === null) return null;
  const listed = part.capacities;
  const at = state.targetOf === "tokens" ? 0 : listed.length - 1;
  return { target: listed[at], marks: listed.filter((_, index) => index !== at) };
}

/** The parts of an answer: of its instances, and of their variants where it lists those apart, being no part of the total. */
export function modelsOf(answer) {
  return [...answer.instances, ...(answer.variants ?? [])];
}

/** One instance's part of an answer, or the total for ""; null where the answer does not list it. */
export function partOf(answer, instance) {
  if (instance === "") return answer.total;
  return modelsOf(answer).find((one) => one.instance_id === instance) ?? null;
}

/** What a summary of /query at `askedCapacities` says; null for null or without requests. */
export function outcome(summary) {
  if (summary === null || summary.requests === 0) return null;
  const [capacity, more, ...slots] = summary.capacity_gb;
  const [rate, rateMore, ...rateSlots] = summary.hit_rates;
  const [tokens, tokensMore] = summary.total_hit_tokens;
  return {
    requests: summary.requests,
    inputTokens: summary.total_input_tokens,
    capacity,
    rate,
    ceiling: summary.ceiling.hit_rate,
    share: summary.of_ceiling[0],
    nextGain: summary.gain_per_gb.hit_rates[0],
    more: more - capacity,
    moreGain: rateMore - rate,
    moreTokens: tokensMore - tokens,
    slots: slots.map((gb, at) => ({ gb, rate: rateSlots[at] })),
  };
}

/** A row for each instance of an answer of /query and of /capacity, the one that gains most first. */
export function modelRows(answer, capacities, state) {
  const variants = new Set((answer.variants ?? []).map((one) => one.instance_id));
  return modelsOf(answer)
    .map((summary) => ({
      instance: summary.instance_id,
      isVariant: variants.has(summary.instance_id),
      outcome: outcome(summary),
      target: targets(partOf(capacities, summary.instance_id), state)?.target ?? null,
    }))
    .filter((row) => row.outcome !== null)
    .sort((a, b) => b.outcome.moreGain - a.outcome.moreGain || (a.instance < b.instance ? -1 : 1));
}

/** Configured capacities in GB of an instance, or of all for "", from /instances; none where it does not know them. */
export function slotsOf(registered, instance) {
  const chosen = registered.instances.filter((one) => instance === "" || one.instance_id === instance);
  return [...new Set(chosen.flatMap((one) => one.registration?.capacity_gb ?? []))].sort((a, b) => a - b);
}

/** Bytes of a block that the facts of an instance were recorded with, or of all for "", from /instances. */
export function chargesOf(registered, instance) {
  const chosen = registered.instances.filter((one) => instance === "" || one.instance_id === instance);
  return [...new Set(chosen.flatMap((one) => one.charges.map((charge) => charge.block_bytes)))].sort((a, b) => a - b);
}

/** Which facts an answer counts: equal texts, equal facts. */
export function signature(answer) {
  return JSON.stringify(
    answer.as_of.map((one) => [
      one.topic, one.generation, one.partition, one.start_offset, one.next_offset, one.missing, one.unreadable,
    ]),
  );
}

/** The newest request that an answer counts in any window, RFC 3339; null without any. */
export function newestTime(answer) {
  const times = answer.as_of.map((one) => one.time).filter((time) => time !== null);
  return times.length ? times.reduce((a, b) => (a > b ? a : b)) : null;
}

/** Why files at the end of partitions can't be read; what they hold is not counted. */
export function unreadableFiles(answer) {
  return answer.as_of.flatMap((one) => one.unreadable);
}

/** Offsets between others that are counted whose facts no segment holds: [{partition, from, to}], `to` not among them. */
export function missingOffsets(answer) {
  return answer.as_of.flatMap(({ partition, missing }) =>
    missing.map((one) => ({ partition, from: one.from_offset, to: one.to_offset })),
  );
}

/** Facts in the topic that are not counted; null where no partition's lag is known. */
export function factsBehind(answer) {
  const lags = answer.as_of.map((one) => one.lag).filter((lag) => lag !== null);
  return lags.length ? lags.reduce((a, b) => a + b, 0) : null;
}
