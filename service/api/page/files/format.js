// Numbers as they are shown.

const WHOLE = new Intl.NumberFormat("en-GB");
const SHORT = new Intl.NumberFormat("en-US", { notation: "compact", maximumSignificantDigits: 4 });
const DIGITS = new Intl.NumberFormat("en-GB", { maximumSignificantDigits: 6 });
const MINUS = "\u2212";
const BYTE_UNITS = ["bytes", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];

/** 12,031 */
export function count(value) {
  return WHOLE.format(value);
}

/** 144.8M */
export function compact(value) {
  return SHORT.format(value);
}

/** A rate from 0 to 1 as 62.31 %; only all of it is 100 %. */
export function percent(rate, digits = 2) {
  const text = (rate * 100).toFixed(digits);
  return rate < 1 && Number(text) === 100 ? `${(100 - 10 ** -digits).toFixed(digits)} %` : `${text} %`;
}

/** A difference of rates in percentage points, with its sign: +2.19 points. */
export function points(difference) {
  return `${signed(difference * 100, (value) => value.toFixed(2))} points`;
}

/** A difference with its sign, the size as `write` gives it. */
export function signed(value, write) {
  const text = write(Math.abs(value));
  if (value === 0 || Number(text) === 0) return text;
  return `${value < 0 ? MINUS : "+"}${text}`;
}

/** A capacity as it was asked: 48 GB. */
export function gigabytes(value) {
  return `${DIGITS.format(value)} GB`;
}

/** A smallest sufficient capacity, rounded up to four digits so that what is shown suffices too: 71.34 GB. */
export function enough(value) {
  return gigabytes(roundUp(value));
}

/** The least number of four digits that is no smaller. */
export function roundUp(value) {
  if (value === 0) return 0;
  const unit = 10 ** (Math.floor(Math.log10(value)) - 3);
  const steps = value / unit;
  // A quotient of doubles may miss a whole number by a hair.
  const nearest = Math.round(steps);
  const whole = Math.abs(steps - nearest) < 1e-9 * steps ? nearest : Math.ceil(steps);
  return Number((whole * unit).toPrecision(4));
}

/** Bytes in the largest binary unit that divides them to at most two decimals: 8 MiB. */
export function bytes(value) {
  let unit = 0;
  let size = value;
  while (size >= 1024 && unit < BYTE_UNITS.length - 1) {
    size /= 1024;
    unit += 1;
  }
  return `${DIGITS.format(size)} ${BYTE_UNITS[unit]}`;
}

/** A time that has passed: 4 s, 3 min, 2 h, 5 days. */
export function age(seconds) {
  if (seconds < 60) return `${Math.max(0, Math.round(seconds))} s`;
  if (seconds < 3600) return `${Math.round(seconds / 60)} min`;
  if (seconds < 2 * 86_400) return `${Math.round(seconds / 3600)} h`;
  return `${Math.round(seconds / 86_400)} days`;
}
