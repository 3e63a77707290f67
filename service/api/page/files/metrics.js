// What the page takes from the Prometheus text of /metrics.

/** The sum of all samples of a metric; null where the text has none, which is not the same as 0. */
export function metricSum(text, name) {
  let sum = null;
  for (const line of text.split("\n")) {
    if (!line.startsWith(name)) continue;
    const after = line[name.length];
    if (after !== "{" && after !== " ") continue;
    const value = Number(line.slice(line.lastIndexOf(" ") + 1));
    if (!Number.isNaN(value)) sum = (sum ?? 0) + value;
  }
  return sum;
}

/** Dead letters and requests not yet processed, of this process; null where it does not know them. */
export function readMetrics(text) {
  // A counter of a label that never came up has no sample: records show whether lanes run here at all.
  const lanes = metricSum(text, "litehit_lane_state") !== null;
  return {
    deadLetters: lanes ? (metricSum(text, "litehit_lane_dead_letters_total") ?? 0) : null,
    requestsBehind: metricSum(text, "litehit_lane_lag_records"),
  };
}
