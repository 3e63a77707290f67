// Where a capacity stands on the slider, which is divided as the chart's axis is.

export const STEPS = 1000;

/**
 * Capacities that are worth showing, in GB: from where the curves begin to rise to past where the last is at its ceiling.
 *
 * `curves` are lists of capacities, ascending.
 */
export function capacityRange(curves, capacity) {
  const ends = curves.filter((curve) => curve.length).map((curve) => curve[curve.length - 1]);
  const reach = Math.max(...ends, 0);
  const max = Math.max(reach * 1.2, capacity) || 1;
  const firsts = curves.map((curve) => curve.find((gb) => gb > 0)).filter((gb) => gb !== undefined);
  const smallest = Math.min(...firsts, max / 10);
  return { min: Math.max(smallest, max / 1e5), max };
}

/** The slider's position, 0 to STEPS, of a capacity. On a logarithmic slider 0 GB is the position 0. */
export function toPosition(gb, range, axis) {
  if (gb <= 0) return 0;
  const share = axis === "log" ? Math.log(gb / range.min) / Math.log(range.max / range.min) : gb / range.max;
  return Math.round(Math.min(Math.max(share, 0), 1) * (STEPS - 1)) + 1;
}

/** The capacity at a position, to three digits. */
export function toCapacity(position, range, axis) {
  if (position <= 0) return 0;
  const share = (position - 1) / (STEPS - 1);
  const gb = axis === "log" ? range.min * (range.max / range.min) ** share : range.max * share;
  return Number(gb.toPrecision(3));
}
