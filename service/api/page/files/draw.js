// Draws figures with plotly, in the colours of the page's theme.

const CONFIG = { displayModeBar: false, showTips: false };
const PICTURE = { format: "png", width: 1200, height: 720, scale: 2 };
const MODELS = ["#7b5ea7", "#2a8c82", "#a8446d", "#8a7a1f", "#4f6bd0", "#5f8f2f", "#b06a3b", "#6b7785"];

const drawn = new WeakMap();

// Asked for at the first drawing; the document has begun to fetch it by then.
let loading;

function library() {
  loading ??= new Promise((resolve, reject) => {
    const script = document.createElement("script");
    script.src = new URL("plotly.min.js", import.meta.url);
    script.addEventListener("load", () => resolve(globalThis.Plotly));
    script.addEventListener("error", () => reject(new Error("The chart library did not load: reload the page.")));
    document.head.append(script);
  });
  return loading;
}

/** The theme's colours, as the style sheet has them at this moment. */
export function themeColours() {
  const style = getComputedStyle(document.documentElement);
  const names = ["card", "ink", "muted", "line", "first", "second", "bars", "band", "font"];
  return {
    ...Object.fromEntries(names.map((name) => [name, style.getPropertyValue(`--${name}`).trim()])),
    models: MODELS,
  };
}

/** Draw a figure into an element, or change the one that is there, once the library, which is large, has loaded. */
export async function draw(element, figure) {
  const wanted = JSON.stringify(figure);
  if (drawn.get(element) === wanted) return;
  if (!drawn.has(element)) followSize(element);
  drawn.set(element, wanted);
  try {
    await (await library()).react(element, figure.data, figure.layout, CONFIG);
  } catch (error) {
    element.textContent = error.message;
  }
}

/** A figure as a PNG, as a data URL. */
export async function picture(figure) {
  const layout = { ...figure.layout, autosize: false, width: PICTURE.width, height: PICTURE.height };
  return (await library()).toImage({ data: figure.data, layout }, PICTURE);
}

// The library follows the window; an element changes its size without it, too.
function followSize(element) {
  new ResizeObserver(() => {
    if (element.offsetWidth > 0 && element.classList.contains("js-plotly-plot")) globalThis.Plotly.Plots.resize(element);
  }).observe(element);
}

/** Call back when the theme changes by itself. */
export function onThemeChange(callback) {
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", callback);
}
