// The hit-rate chart as plotly takes it: plain data, nothing is drawn here.

const QUARTERS = [0, 25, 50, 75, 100];

/**
 * Data and layout of the curves.
 *
 * `series`: {name, colour, dash, width, gb, rates, ceiling, ceilingLabel, marks, slots}, both lists of {gb, rate, label};
 * a ceiling of null draws no line, and slots are drawn of the first. `range` in GB; `capacity` and `more` are marked. `colours` are those of the theme.
 */
export function curveFigure({ series, range, axis, capacity, more, colours, title }) {
  const top = Math.min(1, Math.max(...series.flatMap((one) => [one.ceiling ?? 0, ...one.rates]), 0.01) * 1.15);
  const data = series.flatMap((one) => [line(one, range), ...marks(one)]);
  const log = axis === "log";
  return {
    data,
    layout: {
      ...base(colours),
      title: title ? { text: plain(title), font: { size: 16 }, x: 0.02, xanchor: "left" } : undefined,
      margin: { l: 52, r: 18, t: title ? 56 : 12, b: 50 },
      hovermode: "closest",
      showlegend: series.length > 1,
      legend: { orientation: "h", x: 0, y: -0.2, yanchor: "top" },
      uirevision: `${axis} ${range.min} ${range.max}`,
      xaxis: {
        ...grid(colours),
        title: { text: "Capacity, GB" },
        type: axis,
        range: log ? [Math.log10(range.min), Math.log10(range.max)] : [0, range.max],
        ...(log ? logTicks(range) : {}),
      },
      yaxis: { ...grid(colours), range: [0, top * 100], ticksuffix: " %" },
      shapes: [
        ...series.filter((one) => one.ceiling !== null).map(ceilingLine),
        ...series.slice(0, 1).flatMap((one) => one.slots.map((slot) => slotLine(slot, one.colour))),
        ...chosen(capacity, more, colours),
      ],
      annotations: [
        ...ceilingLabels(series.filter((one) => one.ceiling !== null)),
        ...series.slice(0, 1).flatMap((one) => one.slots.map((slot) => slotLabel(slot, one.colour, log))),
      ],
    },
  };
}

/** Data and layout of requests and hit rates over time; buckets are {start, end, requests, rate, ceiling}. */
export function trafficFigure({ buckets, capacityLabel, colours }) {
  const x = buckets.map((one) => localStamp((one.start + one.end) / 2));
  const width = buckets.map((one) => (one.end - one.start) * 0.9);
  const rates = (name) => buckets.map((one) => (one.requests ? one[name] * 100 : null));
  return {
    data: [
      {
        type: "bar", name: "requests", x, width, y: buckets.map((one) => one.requests),
        marker: { color: colours.bars }, hovertemplate: "%{y:,} requests<extra></extra>",
      },
      {
        type: "scatter", mode: "lines+markers", name: `hit rate at ${capacityLabel}`, x, y: rates("rate"), yaxis: "y2",
        line: { color: colours.first, width: 2 }, marker: { size: 5 },
        hovertemplate: `%{y:.2f} % at ${capacityLabel}<extra></extra>`,
      },
      {
        type: "scatter", mode: "lines", name: "ceiling", x, y: rates("ceiling"), yaxis: "y2",
        line: { color: colours.muted, width: 1.5, dash: "dash" }, hovertemplate: "ceiling %{y:.2f} %<extra></extra>",
      },
    ],
    layout: {
      ...base(colours),
      margin: { l: 44, r: 52, t: 12, b: 40 },
      hovermode: "x unified",
      legend: { orientation: "h", x: 0, y: -0.28, yanchor: "top" },
      bargap: 0,
      xaxis: { ...grid(colours), type: "date", showgrid: false, tickangle: 0, nticks: 7 },
      yaxis: { ...grid(colours), rangemode: "tozero" },
      yaxis2: { ...grid(colours), overlaying: "y", side: "right", range: [0, 104], tickvals: QUARTERS,
        ticktext: QUARTERS.map((value) => `${value} %`), showgrid: false },
    },
  };
}

/** Text that plotly must not read as markup. */
export function plain(text) {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
}

function base(colours) {
  return {
    paper_bgcolor: colours.card,
    plot_bgcolor: colours.card,
    font: { family: colours.font, size: 13, color: colours.ink },
    hoverlabel: { bgcolor: colours.card, bordercolor: colours.line, font: { color: colours.ink } },
    autosize: true,
    dragmode: false,
  };
}

function grid(colours) {
  return { gridcolor: colours.line, zerolinecolor: colours.line, linecolor: colours.line, automargin: true };
}

// A curve stays at its last point's height, up to the chart's end.
function line({ name, colour, dash, width, gb, rates }, range) {
  const flat = gb.length && gb[gb.length - 1] < range.max;
  const y = rates.map((rate) => rate * 100);
  return {
    type: "scatter", mode: "lines", name: plain(name),
    x: flat ? [...gb, range.max] : gb,
    y: flat ? [...y, y[y.length - 1]] : y,
    line: { color: colour, width, dash },
    hovertemplate: `%{x:.4~g} GB: %{y:.2f} %<extra>${plain(name)}</extra>`,
  };
}

function marks({ colour, marks: shares, slots, name }) {
  const listed = [...shares, ...slots.map((slot) => ({ ...slot, named: false }))];
  if (!listed.length) return [];
  return [
    {
      type: "scatter", mode: "markers+text", showlegend: false, cliponaxis: false,
      x: listed.map((mark) => mark.gb),
      y: listed.map((mark) => mark.rate * 100),
      text: listed.map((mark) => (mark.named === false ? "" : plain(mark.label))),
      customdata: listed.map((mark) => plain(mark.label)),
      textposition: "bottom right",
      textfont: { size: 11 },
      marker: { color: colour, size: 9, symbol: listed.map((_, at) => (at < shares.length ? "diamond" : "circle")) },
      hovertemplate: `%{customdata}<br>%{x:.4~g} GB: %{y:.2f} %<extra>${plain(name)}</extra>`,
    },
  ];
}

function slotLine({ gb, rate }, colour) {
  return {
    type: "line", layer: "below", x0: gb, x1: gb, y0: 0, y1: rate * 100, line: { color: colour, width: 1, dash: "dot" },
  };
}

// At the foot of its line; plotly takes a place on a logarithmic axis as the logarithm.
function slotLabel({ gb, label }, colour, log) {
  return {
    x: log ? Math.log10(gb) : gb, y: 0, xanchor: "left", yanchor: "bottom", showarrow: false, text: plain(label),
    font: { color: colour, size: 11 },
  };
}

function ceilingLine({ ceiling, colour }) {
  const y = ceiling * 100;
  return { type: "line", xref: "paper", x0: 0, x1: 1, y0: y, y1: y, line: { color: colour, width: 1.25, dash: "dash" } };
}

// At the left, where the curves are low: the highest above its line, any other below.
function ceilingLabels(series) {
  const highest = Math.max(...series.map((one) => one.ceiling));
  const above = series.findIndex((one) => one.ceiling === highest);
  return series.map(({ ceiling, colour, ceilingLabel: text }, at) => ({
    xref: "paper", x: 0.005, xanchor: "left", y: ceiling * 100, yanchor: at === above ? "bottom" : "top",
    text: plain(text), showarrow: false, font: { color: colour, size: 12 },
  }));
}

function chosen(capacity, more, colours) {
  const upright = { yref: "paper", y0: 0, y1: 1, layer: "below" };
  return [
    { type: "rect", ...upright, x0: capacity, x1: capacity + more, fillcolor: colours.band, line: { width: 0 } },
    { type: "line", ...upright, x0: capacity, x1: capacity, line: { color: colours.ink, width: 1.5 } },
  ].filter((shape) => shape.x0 > 0);
}

// 1, 2 and 5 in each power of ten where there are few, else the powers alone.
function logTicks({ min, max }) {
  const first = Math.floor(Math.log10(min));
  const last = Math.ceil(Math.log10(max));
  const digits = last - first > 4 ? [1] : [1, 2, 5];
  const values = [];
  for (let power = first; power <= last; power += 1) {
    for (const digit of digits) values.push(Number(`${digit}e${power}`));
  }
  const shown = values.filter((value) => value >= min && value <= max);
  return { tickvals: shown, ticktext: shown.map((value) => value.toLocaleString("en-GB")) };
}

// plotly shows dates as they are written, so they are written by the reader's clock.
function localStamp(milliseconds) {
  const shifted = new Date(milliseconds - new Date(milliseconds).getTimezoneOffset() * 60_000);
  return shifted.toISOString().slice(0, 19);
}
