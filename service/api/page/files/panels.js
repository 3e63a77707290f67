// Writes the answers into the document.

import { modelRows, outcome, partOf, targets } from "./answers.js";
import { byId, setHeadings, setRows, setText, show } from "./dom.js";
import { count } from "./format.js";
import { freshness, freshnessDetails } from "./freshness.js";
import { bothTimes } from "./windows.js";
import {
  figureRows, headline, modelCells, modelHeadings, modelName, modelsSentence, notice, sideNames,
} from "./words.js";

/** The answer, its figures and the models. `choose` is told an instance whose row was pressed. */
export function showAnswers({ state, sides }, choose) {
  const names = sideNames(sides.map((one) => one.side));
  const outcomes = sides.map(({ side, query }) => outcome(partOf(query, side.instance)));
  const wanted = sides.map(({ side, capacity }) => targets(partOf(capacity, side.instance), state)?.target ?? null);
  showHeadline(headline(names, outcomes));
  setText(byId("name-shown"), names[0]);
  setText(byId("name-compare"), names[1] ?? "");
  for (const cell of document.querySelectorAll("#figures [data-compare]")) show(cell, sides.length > 1);
  byId("figures").classList.toggle("compared", sides.length > 1);
  setRows(byId("figures").tBodies[0], figureRows(outcomes, wanted, state), { headed: true });
  const [{ query, capacity }] = sides;
  const rows = modelRows(query, capacity, state);
  const headings = modelHeadings(state);
  setText(byId("models-sentence"), modelsSentence(rows, state));
  setHeadings(byId("models").tHead.rows[0], headings);
  const cells = rows.map((row) => [{ text: row.instance, press: () => choose(row.instance) }, ...modelCells(row)]);
  setRows(byId("models").tBodies[0], cells, { labels: headings });
  document.title = outcomes[0] ? `${byId("headline").textContent} · LiteHit` : "LiteHit";
}

/** What to do where there is no answer. Returns whether a message is shown. */
export function showNotice(about) {
  const said = notice(about);
  show(byId("notice"), said !== null);
  if (said === null) return false;
  byId("notice").classList.toggle("bad", said.level === "bad");
  setText(byId("notice-text"), said.text);
  const action = byId("notice-action");
  show(action, said.action !== null);
  action.dataset.action = said.action ?? "";
  setText(action, said.action === "all-time" ? "Show all time" : "Start from the defaults");
  return true;
}

/** Whether the numbers are up to date, and which facts they count. */
export function showState(about, asOf) {
  const said = freshness(about);
  byId("freshness").dataset.level = said.level;
  setText(byId("freshness-text"), said.text);
  setText(byId("state-sentence"), said.text.endsWith(".") ? said.text : `${said.text}.`);
  const details = byId("state-details");
  const wanted = freshnessDetails(about).flat();
  wanted.forEach((text, at) => {
    const element = details.children[at] ?? details.appendChild(document.createElement(at % 2 ? "dd" : "dt"));
    setText(element, text);
  });
  const headings = ["Partition", "Topic", "Generation", "Next offset", "Newest request", "Facts behind"];
  setHeadings(byId("as-of").tHead.rows[0], headings);
  const rows = asOf.map((one) => [
    String(one.partition), one.topic, one.generation, count(one.next_offset), one.time ? bothTimes(one.time) : "none",
    one.lag === null ? "not known here" : count(one.lag),
  ]);
  setRows(byId("as-of").tBodies[0], rows, { labels: headings });
}

/** Read the answer out; screen readers do so when it changes. */
export function speak() {
  setText(byId("spoken"), byId("headline").textContent);
}

/** What a chart shows, for those who do not see it. */
export function curveLabel({ state, sides }) {
  const said = sides.map(({ side, capacity }) => {
    const marks = targets(partOf(capacity, side.instance), state)?.marks ?? [];
    const reached = marks.map((one) => `${one.of_ceiling_wanted * 100} % of the ceiling at ${one.capacity_gb} GB`);
    return `${modelName(side.instance)}: ${reached.join(", ")}`;
  });
  return `Hit rate by capacity. ${said.join(". ")}`;
}

function showHeadline({ before, figure, after }) {
  const element = byId("headline");
  if (element.textContent === [before, figure, after].join(" ").trim()) return;
  const strong = document.createElement("strong");
  strong.textContent = figure;
  element.replaceChildren(before, ...(figure ? [" ", strong, ` ${after}`] : []));
}
