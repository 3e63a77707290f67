// The page: what is chosen, what was answered, and the round of asking and showing.

import { CallFailed, address, ask, askMetrics, askReadiness } from "./api.js";
import {
  chargesOf, factsBehind, missingOffsets, modelsOf, newestTime, outcome, partOf, slotsOf, unreadableFiles,
} from "./answers.js";
import { curveFigure, trafficFigure } from "./chart.js";
import { bindControls, showControls } from "./controls.js";
import { curvesCsv } from "./csv.js";
import { byId, save, setText, show } from "./dom.js";
import { draw, onThemeChange, picture, themeColours } from "./draw.js";
import { gigabytes } from "./format.js";
import { asker, loadSides } from "./load.js";
import { readMetrics } from "./metrics.js";
import { curveLabel, showAnswers, showNotice, showState, speak } from "./panels.js";
import { capacityRange } from "./scale.js";
import { curveSeries, curveTables, leftOut } from "./series.js";
import { DEFAULTS, readState, writeState } from "./state.js";
import { loadTraffic } from "./traffic.js";
import { blockHint, curveHint, leftOutText, sideNames, trafficSentence } from "./words.js";

const REFRESH_MS = 5_000;
const SLOW_MS = 15_000; // for what costs the service more and changes less
const TRAFFIC_MS = 30_000;
const SETTLED_MS = 300;

const page = {
  ...readState(location.search), // state, refused
  instances: [],
  registered: null, // /instances
  registeredAt: 0,
  readiness: null,
  metrics: { deadLetters: null, requestsBehind: null },
  shown: null, // {state, sides} as last answered
  traffic: null, // {key, at, answer} as last answered
  newest: null,
  range: capacityRange([], 100),
  failure: null,
  answeredAt: null,
};
let kept = new Map();
let running = false;
let again = false;
let toSpeak = false;
let settling = null;
let askingTraffic = false;

function change(parts) {
  page.state = { ...page.state, ...parts };
  page.refused = [];
  toSpeak = true;
  showControls(page);
  if (settling !== null) clearTimeout(settling);
  settling = setTimeout(settle, SETTLED_MS);
  refresh({ status: false });
}

// What is too dear to do at each step of a slider: browsers limit changes of the address, and traffic takes many calls.
function settle() {
  settling = null;
  history.replaceState(null, "", writeState(page.state));
  refreshTraffic();
}

// One round at a time; what changes meanwhile is asked for in the next.
async function refresh({ status }) {
  again = true;
  if (running) return;
  running = true;
  try {
    while (again) {
      again = false;
      await round(status);
    }
  } finally {
    running = false; // whatever went wrong, the next round is asked for
  }
  refreshTraffic();
}

async function round(status) {
  const { state } = page;
  try {
    if (status || page.readiness === null || page.registered === null) await askStatus();
    const asking = asker(ask, kept);
    const sides = await loadSides(state, asking, (instance) => slotsOf(page.registered, instance), new Date());
    kept = asking.kept;
    page.shown = { state, sides };
    page.newest = newestTime(sides[0].query);
    page.instances = [...new Set([...page.instances, ...modelsOf(sides[0].query).map((one) => one.instance_id)])].sort();
    page.failure = null;
    page.answeredAt = Date.now();
  } catch (failure) {
    if (!(failure instanceof CallFailed)) throw failure;
    page.failure = failure;
  }
  showAll();
  if (toSpeak && !again && page.failure === null) {
    toSpeak = false;
    speak();
  }
}

async function askStatus() {
  page.readiness = await askReadiness(); // kept even where the others have no answer yet
  if (Date.now() - page.registeredAt < SLOW_MS) return;
  page.metrics = readMetrics(await askMetrics());
  const instances = await ask("instances");
  page.registered = instances;
  page.registeredAt = Date.now();
  page.instances = [...new Set([...page.instances, ...instances.instances.map((one) => one.instance_id)])].sort();
}

function showAll() {
  const { shown, failure, metrics } = page;
  if (shown !== null) {
    const curves = shown.sides.filter((one) => one.curve !== null).map((one) => partOf(one.curve, one.side.instance));
    page.range = capacityRange(curves.map((curve) => curve.capacity_gb), page.state.capacity);
    showAnswers(shown, (instance) => change({ shown: { ...page.state.shown, instance } }));
    setText(byId("curve-hint"), curveHint(curves, shown.state.axis, page.registered.lanes_in_this_process));
    setText(byId("left-out"), leftOutText(leftOut(shown.sides)));
    setText(byId("block-bytes-hint"), blockHint(chargesOf(page.registered, shown.state.shown.instance)));
    byId("curve").setAttribute("aria-label", curveLabel(shown));
    drawCurve();
  }
  const asOf = shown?.sides[0].query.as_of ?? [];
  const empty = shown !== null && shown.sides.every(({ side, query }) => outcome(partOf(query, side.instance)) === null);
  showControls(page);
  showNotice({ failure, refused: page.refused, newest: page.newest, empty, origin: location.origin });
  show(byId("answers"), shown !== null && page.newest !== null);
  show(byId("models-section"), shown !== null && page.newest !== null);
  showState(
    {
      failure: failure?.status === 0 ? failure.message : null,
      answeredAt: page.answeredAt,
      readiness: page.readiness,
      newest: page.newest,
      factsBehind: shown === null ? null : factsBehind(shown.sides[0].query),
      unreadable: shown === null ? [] : unreadableFiles(shown.sides[0].query),
      missing: shown === null ? [] : missingOffsets(shown.sides[0].query),
      requestsBehind: metrics.requestsBehind,
      deadLetters: metrics.deadLetters,
      now: Date.now(),
    },
    asOf,
  );
}

function figureOfCurve(title) {
  const { state, sides } = page.shown;
  const colours = themeColours();
  const { range } = page;
  return curveFigure({ series: curveSeries(sides, state, colours), range, ...state, colours, title });
}

function drawCurve() {
  return draw(byId("curve"), figureOfCurve());
}

async function refreshTraffic() {
  if (page.shown === null || page.failure !== null || running || settling !== null || askingTraffic) return;
  const { state, sides } = page.shown;
  const [{ side, window, query }] = sides;
  const part = partOf(query, side.instance);
  const key = JSON.stringify([side, state.capacity, state.blockBytes]);
  if (page.traffic?.key === key && Date.now() - page.traffic.at < TRAFFIC_MS) return;
  const askPart = async (from, to) => {
    const about = [["from", from], ["to", to], ["block_bytes", state.blockBytes]];
    return partOf(await ask(address("query", [["capacity_gb", state.capacity], ...about])), side.instance);
  };
  const requests = part?.requests ?? 0;
  askingTraffic = true;
  try {
    const answer = await loadTraffic({ window, newest: page.newest, requests, now: Date.now(), askPart });
    page.traffic = { key, at: Date.now(), answer, side, capacity: state.capacity, requests };
  } catch (failure) {
    // The next round shows why, if it lasts.
    if (!(failure instanceof CallFailed)) throw failure;
    return;
  } finally {
    askingTraffic = false;
  }
  showTraffic();
  refreshTraffic(); // something else may be shown by now
}

function showTraffic() {
  const { answer, side, capacity, requests } = page.traffic;
  show(byId("traffic-section"), answer !== null);
  if (answer === null) return;
  const sentence = `${sideNames([side])[0]}: ${trafficSentence(answer, requests)}`;
  setText(byId("traffic-sentence"), sentence);
  byId("traffic").setAttribute("aria-label", `Requests over time. ${sentence}`);
  const colours = themeColours();
  draw(byId("traffic"), trafficFigure({ buckets: answer.buckets, capacityLabel: gigabytes(capacity), colours }));
}

function redraw() {
  if (page.shown !== null) drawCurve();
  if (page.traffic !== null) showTraffic();
}

function bindButtons() {
  byId("download-csv").addEventListener("click", () => {
    if (page.shown === null) return;
    const blob = new Blob([curvesCsv(curveTables(page.shown.sides))], { type: "text/csv" });
    const url = URL.createObjectURL(blob);
    save("litehit-curve.csv", url);
    URL.revokeObjectURL(url);
  });
  byId("download-png").addEventListener("click", async () => {
    if (page.shown === null) return;
    const names = sideNames(page.shown.sides.map((one) => one.side));
    save("litehit-curve.png", await picture(figureOfCurve(`Hit rate by capacity: ${names.join(" and ")}`)));
  });
  byId("notice-action").addEventListener("click", (event) => {
    if (event.target.dataset.action === "defaults") change({ ...DEFAULTS });
    else change({ shown: { ...page.state.shown, window: "all", from: null, to: null }, compare: null });
  });
  const theme = byId("theme");
  theme.value = document.documentElement.dataset.theme ?? "auto";
  theme.addEventListener("change", () => {
    localStorage.setItem("litehit-theme", theme.value);
    if (theme.value === "auto") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = theme.value;
    redraw();
  });
  onThemeChange(redraw);
}

async function keepFresh() {
  try {
    if (!document.hidden) await refresh({ status: true });
  } finally {
    setTimeout(keepFresh, REFRESH_MS);
  }
}

bindControls(page, change);
bindButtons();
showControls(page);
document.addEventListener("visibilitychange", () => document.hidden || refresh({ status: true }));
keepFresh();
