// What every page gains: busy regions, buttons that copy, the last press of Back, themes without a reload.

// What takes longer than a moment is marked busy; the old content stays readable meanwhile.
const MOMENT = 300;
let timer = 0;

const busyRegions = () => document.querySelectorAll("[data-busy]");

function bindBusy() {
  document.body.addEventListener("htmx:beforeRequest", () => {
    clearTimeout(timer);
    timer = setTimeout(() => busyRegions().forEach((region) => region.setAttribute("aria-busy", "true")), MOMENT);
  });
  document.body.addEventListener("htmx:afterRequest", () => {
    clearTimeout(timer);
    busyRegions().forEach((region) => region.removeAttribute("aria-busy"));
  });
}

// Back and Forward: the last press wins. What was under way before it does not come on the page any more.
let underWay = null;

function supersede({ detail: { xhr } }) {
  underWay?.abort();
  underWay = xhr;
  for (const asking of document.querySelectorAll(".htmx-request")) htmx.trigger(asking, "htmx:abort");
}

function bindHistory() {
  document.body.addEventListener("htmx:historyCacheMiss", supersede);
}

// The code beside a button, the address of a link, or the sentence of a report with its address
function copiedBy(control) {
  if ("copyLink" in control.dataset) return control.href;
  if ("copy" in control.dataset) return control.parentElement.querySelector("pre, textarea").textContent;
  const sentence = control.closest(".report__main > *").querySelector(".report__say");
  return `${sentence.innerText.replace(/\s+/g, " ").trim()}\n${control.href}`;
}

// Copies what a control is for. Where nothing can be copied, a link is followed.
function bindCopy() {
  document.addEventListener("click", async (event) => {
    const control = event.target.closest("[data-copy], [data-copy-link], [data-copy-report]");
    if (!control || !navigator.clipboard) return;
    event.preventDefault();
    await navigator.clipboard.writeText(copiedBy(control));
    control.textContent = "Copied";
  });
}

// The theme, large type and the marks of what leaves next switch at once. The server keeps the choice in a
// cookie, also if another page is opened meanwhile.
const dark = window.matchMedia("(prefers-color-scheme: dark)");

function keep(form, name, value) {
  const body = new FormData(form);
  body.set(name, value);
  fetch(form.action, { method: "POST", body, redirect: "manual", keepalive: true });
}

function switchDisplay(form) {
  const { display: name, on } = form.dataset;
  const shown = document.documentElement.dataset;
  if (shown[name] === on) delete shown[name];
  else shown[name] = on;
  keep(form, "switch", name);
}

function switchTheme(form) {
  const shown = document.documentElement.dataset;
  const isDark = shown.theme ? shown.theme === "dark" : dark.matches;
  shown.theme = isDark ? "light" : "dark";
  keep(form, "theme", shown.theme);
}

function bindSwitches() {
  document.body.addEventListener("submit", (event) => {
    const form = event.target.closest("[data-display], [data-theme-form]");
    if (!form) return;
    event.preventDefault();
    if (form.dataset.display) switchDisplay(form);
    else switchTheme(form);
  });
}

export function bindPage() {
  bindBusy();
  bindHistory();
  bindCopy();
  bindSwitches();
}
