import { pause, play } from "./play.js";

// The keyboard map; off while someone types.
const typing = "input:not([type=radio]), textarea, select, [contenteditable]";
let goes = false;

function press(key) {
  document.querySelector(`[data-key="${key}"]`)?.click();
}

function move(direction) {
  const rows = [...document.querySelectorAll("[data-pane=history] [data-seq]")];
  const chosen = rows.findIndex((row) => row.classList.contains("is-sel"));
  const next = chosen < 0 ? rows.at(direction > 0 ? 0 : -1) : rows[chosen + direction];
  next?.querySelector("a").click();
}

// Ten steps at once: the step is part of the address.
function jump(steps) {
  const main = document.querySelector("[data-conversation]");
  if (!main) return;
  const { at, steps: last } = main.dataset;
  const to = Math.min(Math.max(Number(at) + steps, 0), Number(last));
  htmx.ajax("GET", `${main.dataset.url}?at=${to}`, { source: "#main", target: "#main", swap: "outerHTML" });
}

const actions = {
  j: () => move(1),
  k: () => move(-1),
  ArrowLeft: (event) => (event.shiftKey ? jump(-10) : press("back")),
  ArrowRight: (event) => (event.shiftKey ? jump(10) : press("forward")),
  "[": () => press("previous-eviction"),
  "]": () => press("next-eviction"),
  " ": () => play(),
  s: () => document.querySelector("[data-composer] textarea")?.focus(),
  Escape: () => press("clear"),
  h: () => document.querySelector("[data-pane=history]")?.focus(),
  m: () => document.querySelector("[data-pane=memory]")?.focus(),
  "/": () => document.querySelector("[data-search]")?.focus(),
  "?": () => document.querySelector("#keys").togglePopover(),
};

export function bindKeys() {
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.target.matches(typing)) return;
    const action = goes ? { l: () => press("live"), o: () => location.assign("/") }[event.key] : actions[event.key];
    goes = !goes && event.key === "g";
    if (!action || (event.key === " " && event.target.closest("a, button"))) return;
    event.preventDefault();
    if (event.key !== " ") pause();
    action(event);
  });
}
