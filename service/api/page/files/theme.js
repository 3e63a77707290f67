// Loaded before anything is painted, so that a chosen theme does not flash.
const chosen = localStorage.getItem("litehit-theme");
if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen;
