// Runs before the body is there, so that the page is drawn once, as scripts want it.
document.documentElement.dataset.js = "";
