// The form: what the reader chooses becomes a state, and a state fills the form.

import { byId, setError, setField, setOptions, setText, show } from "./dom.js";
import { toCapacity, toPosition } from "./scale.js";
import { capacity, counterpart, percentage, positive, wholeBytes } from "./state.js";
import { PRESETS, describeWindow, fromField, resolveWindow, toField } from "./windows.js";
import { gigabytes } from "./format.js";
import { modelName } from "./words.js";

const NUMBERS = [
  { id: "capacity", name: "capacity", parse: capacity, error: "Give a number of GB, from 0." },
  { id: "more", name: "more", parse: positive, error: "Give a number of GB above 0." },
  { id: "target", name: "target", parse: percentage, error: "Give a percentage above 0 and up to 100." },
  {
    id: "block-bytes", name: "blockBytes", error: "Give a whole number of bytes from 1, or empty the field.",
    parse: (text) => (text.trim() === "" ? null : wholeBytes(text)),
  },
];
const SIDES = { shown: "side-shown", compare: "side-compare" };

/**
 * Let every field change the state. `page` has `state`, `instances` (their ids), `range` and `newest`; `change` takes the
 * parts of the state that are new.
 */
export function bindControls(page, change) {
  for (const { id, name, parse, error } of NUMBERS) {
    const field = byId(id);
    field.addEventListener("input", () => {
      // A number field's value is "" for text that is no number, too.
      const value = field.validity.badInput ? undefined : parse(field.value);
      setError(field, value === undefined ? error : null);
      if (value !== undefined) change({ [name]: value });
    });
    field.addEventListener("blur", () => {
      setError(field, null);
      setField(field, page.state[name]);
    });
  }
  const slider = byId("capacity-slider");
  slider.addEventListener("input", () => {
    change({ capacity: toCapacity(Number(slider.value), page.range, page.state.axis) });
  });
  byId("target-of").addEventListener("change", (event) => change({ targetOf: event.target.value }));
  for (const radio of document.getElementsByName("axis")) {
    radio.addEventListener("change", () => change({ axis: radio.value }));
  }
  for (const [name, id] of Object.entries(SIDES)) {
    byId(id).addEventListener("change", () => change({ [name]: readSide(byId(id), page.state[name], page) }));
  }
  byId("compare").addEventListener("click", () => {
    change({ compare: page.state.compare ? null : counterpart(page.state.shown, page.instances) });
  });
  byId("controls").addEventListener("submit", (event) => event.preventDefault());
}

/** Fill the form with the page's state. */
export function showControls(page) {
  const { state, range } = page;
  for (const { id, name } of NUMBERS) setField(byId(id), state[name]);
  const slider = byId("capacity-slider");
  const position = String(toPosition(state.capacity, range, state.axis));
  if (slider !== document.activeElement || toCapacity(Number(slider.value), range, state.axis) !== state.capacity) {
    slider.value = position;
  }
  slider.setAttribute("aria-valuetext", gigabytes(state.capacity));
  byId("target-of").value = state.targetOf;
  for (const radio of document.getElementsByName("axis")) radio.checked = radio.value === state.axis;
  for (const [name, id] of Object.entries(SIDES)) {
    show(byId(id), state[name] !== null);
    if (state[name] !== null) showSide(byId(id), state[name], page);
  }
  setText(byId("compare"), state.compare ? "Stop comparing" : "Compare");
  byId("compare").setAttribute("aria-pressed", String(state.compare !== null));
}

function showSide(fieldset, side, page) {
  const known = [...new Set([...page.instances, side.instance])].filter((id) => id !== "").sort();
  const instance = part(fieldset, "instance");
  setOptions(instance, [["", "All models together"], ...known.map((id) => [id, modelName(id)])]);
  instance.value = side.instance;
  const window = part(fieldset, "window");
  setOptions(window, PRESETS.map(({ id, label }) => [id, label]));
  window.value = side.window;
  for (const label of fieldset.querySelectorAll("[data-custom]")) show(label, side.window === "custom");
  setField(part(fieldset, "from"), toField(side.from));
  setField(part(fieldset, "to"), toField(side.to));
  const { local, utc } = describeWindow(resolveWindow(side, new Date()));
  setText(fieldset.querySelector("[data-hint]"), utc ? `${local}; in UTC ${utc}` : local);
}

// A time that the reader did not touch stays as it was written in the address, to the nanosecond.
function readSide(fieldset, before, page) {
  const side = { ...before, instance: part(fieldset, "instance").value, window: part(fieldset, "window").value };
  if (side.window !== "custom") return { ...side, from: null, to: null };
  if (before.window !== "custom") return { ...side, ...startingPoint(before, page) };
  for (const name of ["from", "to"]) {
    const text = part(fieldset, name).value;
    if (text !== toField(before[name])) side[name] = fromField(text);
  }
  return side;
}

// A window of one's own starts as the one before it; all time as the day up to the newest request.
function startingPoint(before, page) {
  const now = new Date();
  const { from, to } = resolveWindow(before, now);
  if (from !== null) return { from, to: to ?? wholeSecond(now.getTime()) };
  const end = page.newest === null ? now.getTime() : Date.parse(page.newest) + 1000;
  return { from: wholeSecond(end - 86_400_000), to: wholeSecond(end) };
}

function wholeSecond(milliseconds) {
  return new Date(Math.floor(milliseconds / 1000) * 1000).toISOString();
}

function part(fieldset, name) {
  return fieldset.querySelector(`[data-field="${name}"]`);
}
