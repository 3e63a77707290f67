// Changes to the document that leave alone what is as it should be, so that nothing flickers or loses its focus.

/** The element with an id. */
export function byId(id) {
  return document.getElementById(id);
}

/** Set an element's text. */
export function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

/** Show or hide an element. */
export function show(element, shown) {
  if (element.hidden === shown) element.hidden = !shown;
}

/** Let a form field hold a value, unless the reader is changing it. */
export function setField(field, value) {
  const text = value === null ? "" : String(value);
  if (field !== document.activeElement && field.value !== text) field.value = text;
}

/** The options of a select, as [value, label]; the chosen value stays where it is still there. */
export function setOptions(select, options) {
  const wanted = JSON.stringify(options);
  if (select.dataset.options === wanted) return;
  const value = select.value;
  select.replaceChildren(...options.map(([id, label]) => new Option(label, id)));
  select.dataset.options = wanted;
  if (options.some(([id]) => id === value)) select.value = value;
}

/**
 * The rows of a table's body. A cell is a text, or {text, press} for a button; the first of a row of `headed` tables is its
 * heading. `labels` name the columns where the table is shown as cards.
 */
export function setRows(body, rows, { labels = [], headed = false } = {}) {
  while (body.rows.length > rows.length) body.deleteRow(-1);
  rows.forEach((cells, at) => {
    const row = body.rows[at] ?? body.insertRow();
    while (row.cells.length > cells.length) row.deleteCell(-1);
    cells.forEach((cell, column) => setCell(row, column, cell, headed && column === 0, labels[column]));
  });
}

/** The heading row of a table. */
export function setHeadings(row, labels) {
  while (row.cells.length > labels.length) row.deleteCell(-1);
  labels.forEach((label, column) => {
    if (!row.cells[column]) {
      const heading = document.createElement("th");
      heading.scope = "col";
      row.append(heading);
    }
    setText(row.cells[column], label);
  });
}

/** Say what is wrong with a field, or null for nothing. */
export function setError(field, message) {
  const place = byId(`${field.id}-error`);
  show(place, message !== null);
  setText(place, message ?? "");
  if (message === null) field.removeAttribute("aria-invalid");
  else field.setAttribute("aria-invalid", "true");
}

/** Let the browser save a file. */
export function save(name, url) {
  const link = document.createElement("a");
  link.href = url;
  link.download = name;
  link.click();
}

function setCell(row, column, content, heading, label) {
  let cell = row.cells[column];
  if (!cell) {
    cell = document.createElement(heading ? "th" : "td");
    if (heading) cell.scope = "row";
    row.append(cell);
  }
  if (label !== undefined && cell.dataset.label !== label) cell.dataset.label = label;
  if (typeof content === "string") {
    setText(cell, content);
    return;
  }
  let button = cell.querySelector("button");
  if (!button) {
    button = document.createElement("button");
    button.type = "button";
    cell.replaceChildren(button);
  }
  setText(button, content.text);
  button.onclick = content.press;
}
