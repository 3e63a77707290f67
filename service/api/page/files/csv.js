// The curves as a table for other programs.

const COLUMNS = ["series", "instance_id", "from", "to", "capacity_gb", "hit_blocks", "hit_tokens", "hit_rate"];

/** CSV of curves: `series` names each, `points` are the service's own numbers. */
export function curvesCsv(curves) {
  const lines = [COLUMNS.join(",")];
  for (const { series, instance, window, points } of curves) {
    const fixed = [series, instance, window.from ?? "", window.to ?? ""].map(quoted);
    points.capacity_gb.forEach((gb, at) => {
      lines.push([...fixed, gb, points.hit_blocks[at], points.hit_tokens[at], points.hit_rates[at]].join(","));
    });
  }
  return `${lines.join("\r\n")}\r\n`;
}

function quoted(text) {
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
