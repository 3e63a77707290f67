// Which curves are drawn, and how.

import { modelsOf, outcome, partOf, targets } from "./answers.js";
import { gigabytes, percent } from "./format.js";
import { sideNames } from "./words.js";

/** Models drawn beside the total at most, the busiest first; more could not be told apart. */
const MOST_MODELS = 8;

/** The curves of answered sides as `curveFigure` takes them. */
export function curveSeries(sides, state, colours) {
  const names = sideNames(sides.map((one) => one.side));
  const series = sides.flatMap((one, at) => {
    if (one.curve === null) return [];
    const second = at > 0;
    return [
      {
        ...line(names[at], partOf(one.curve, one.side.instance)),
        colour: second ? colours.second : colours.first,
        dash: second ? "8px,4px" : "solid",
        width: 3,
        marks: second ? marksOf(one, state).map(unnamed) : marksOf(one, state),
        slots: slotsOf(one),
        ceilingLabel: `ceiling ${percent(partOf(one.curve, one.side.instance).ceiling.hit_rate)}`,
      },
    ];
  });
  const only = sides.length === 1 && sides[0].side.instance === "" ? sides[0].curve : null;
  return [...series, ...(only === null || modelsOf(only).length < 2 ? [] : modelLines(only, colours))];
}

/** The curves of answered sides as `curvesCsv` takes them: of each side, of every model where it stands for all. */
export function curveTables(sides) {
  const names = sideNames(sides.map((one) => one.side));
  return sides.flatMap(({ side, window, curve }, at) => {
    if (curve === null) return [];
    const own = { series: names[at], instance: side.instance, window, points: partOf(curve, side.instance) };
    if (side.instance !== "") return [own];
    const models = modelsOf(curve).map((one) => ({
      series: one.instance_id, instance: one.instance_id, window, points: one,
    }));
    return [own, ...models];
  });
}

/** Instances of a curve's answer that are not drawn. */
export function leftOut(sides) {
  const only = sides.length === 1 && sides[0].side.instance === "" ? sides[0].curve : null;
  return Math.max(0, (only === null ? 0 : modelsOf(only).length) - MOST_MODELS);
}

// Names of marks of two curves would lie on each other; the pointer shows those of the second.
function unnamed(mark) {
  return { ...mark, named: false };
}

function line(name, part) {
  return { name, gb: part.capacity_gb, rates: part.hit_rates, ceiling: part.ceiling.hit_rate };
}

function modelLines(answer, colours) {
  return modelsOf(answer)
    .sort((a, b) => b.total_input_tokens - a.total_input_tokens)
    .slice(0, MOST_MODELS)
    .sort((a, b) => (a.instance_id < b.instance_id ? -1 : 1)) // a model's colour does not change with its traffic
    .map((part, at) => ({
      ...line(part.instance_id, part),
      ceiling: null, colour: colours.models[at % colours.models.length], dash: "solid", width: 1.5, marks: [], slots: [],
    }));
}

function marksOf({ side, capacity }, state) {
  const shares = targets(partOf(capacity, side.instance), state)?.marks ?? [];
  return shares
    .filter((one) => one.reachable)
    .map((one) => ({ gb: one.capacity_gb, rate: one.hit_rate, label: percent(one.of_ceiling_wanted, 0) }));
}

// A slot of 0 GB has no place on a logarithmic axis, and no hits.
function slotsOf({ side, query }) {
  const slots = outcome(partOf(query, side.instance))?.slots ?? [];
  return slots.filter(({ gb }) => gb > 0).map(({ gb, rate }) => ({ gb, rate, label: gigabytes(gb) }));
}
