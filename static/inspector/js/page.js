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

// Copies the code beside a button, or the address of a link. Where nothing can be copied, the link is followed.
function bindCopy() {
  document.addEventListener("click", async (event) => {
    const control = event.target.closest("[data-copy], [data-copy-link]");
    if (!control || !navigator.clipboard) return;
    event.preventDefault();
    const beside = control.parentElement.querySelector("pre, textarea");
    await navigator.clipboard.writeText("copyLink" in control.dataset ? control.href : beside.textContent);
    control.textContent = "Copied";
  });
}

// Switches large type, or the marks of what leaves next, at once; the server keeps the choice in a cookie.
function bindDisplay() {
  document.body.addEventListener("submit", (event) => {
    const form = event.target.closest("[data-display]");
    if (!form) return;
    event.preventDefault();
    const { display: name, on } = form.dataset;
    const shown = document.documentElement.dataset;
    if (shown[name] === on) delete shown[name];
    else shown[name] = on;
    const body = new FormData(form);
    body.set("switch", name);
    fetch(form.action, { method: "POST", body, redirect: "manual" });
  });
}

// Switches the theme at once and keeps the choice in the cookie that the server reads.
const dark = window.matchMedia("(prefers-color-scheme: dark)");

function currentTheme() {
  return document.documentElement.dataset.theme || (dark.matches ? "dark" : "light");
}

function bindTheme() {
  document.body.addEventListener("submit", (event) => {
    const form = event.target.closest("[data-theme-form]");
    if (!form) return;
    event.preventDefault();
    const theme = currentTheme() === "dark" ? "light" : "dark";
    const body = new FormData(form);
    body.set("theme", theme);
    document.documentElement.dataset.theme = theme;
    // Also if another page is opened meanwhile
    fetch(form.action, { method: "POST", body, redirect: "manual", keepalive: true });
  });
}

export function bindPage() {
  bindBusy();
  bindHistory();
  bindCopy();
  bindDisplay();
  bindTheme();
}
