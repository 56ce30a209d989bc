import { pause, play } from "./play.js";
import { currentChoice, goTo, move as step, whenShown } from "./steps.js";

// The keyboard map; off while someone types.
const typing = "input:not([type=radio]), textarea, select, [contenteditable]";
let goes = false;

function press(key) {
  document.querySelector(`[data-key="${key}"]`)?.click();
}

// To the nearest step at which messages left. A held key is one movement.
function leap(way, { repeat }) {
  const go = () => {
    const to = document.querySelector(`#go-${way}`)?.dataset.stepTo;
    if (to) goTo(Number(to), repeat);
  };
  if (document.querySelector("[data-place]")) whenShown(go, repeat);
}

// On the overview the focus goes from cause to cause, then from conversation to conversation; after a search
// or with a filter from conversation to conversation.
function walk(direction) {
  const lines = document.querySelectorAll(location.search ? "[data-rows] tr" : "[data-cause], [data-rows] tr");
  const links = [...lines].map((line) => line.querySelector("a"));
  const at = links.indexOf(document.activeElement);
  (at < 0 ? links.at(direction > 0 ? 0 : -1) : links[at + direction])?.focus();
}

// Counts from the message that is wanted, not from the one that the panes have reached.
function choose(direction) {
  const hits = [...document.querySelectorAll("[data-pane=history] [data-seq] .hit")];
  const chosen = hits.findIndex(({ name, value }) => `${name}=${value}` === currentChoice());
  const next = chosen < 0 ? hits.at(direction > 0 ? 0 : -1) : hits[chosen + direction];
  next?.click();
  return Boolean(next);
}

// Behind the rows that are shown it goes on when others are.
function move(direction) {
  if (!document.querySelector("[data-place]")) walk(direction);
  else if (!choose(direction)) whenShown(() => choose(direction));
}

// Ten steps with Shift. A held key is one movement. In lessons, a step or a screen.
function go(direction, { shiftKey, repeat }) {
  if (document.querySelector("[data-place]")) step(shiftKey ? 10 * direction : direction, repeat);
  else press(direction > 0 ? "forward" : "back");
}

// Open the composer, on a phone in its pane.
function simulate() {
  document.querySelector("#pane-m")?.click();
  document.querySelector("[data-composer] textarea")?.focus();
}

// Esc closes one thing, the topmost: help (by the browser itself), a time, the field that has the focus, the
// draft that is edited, the selection, the search, the simulation. Back brings each of them again.
function close(event) {
  const isTyping = event.target.matches(typing);
  if (document.querySelector(":popover-open")) return;
  event.preventDefault();
  pause();
  if (closeTime()) return;
  if (isTyping) document.querySelector("#main").focus({ preventScroll: true });
  else press(["cancel", "clear", "discard"].find((key) => document.querySelector(`[data-key="${key}"]`)));
}

// The box in which a time is written.
function closeTime() {
  const box = document.querySelector("#tape-when[open]");
  if (!box) return false;
  box.open = false;
  box.querySelector("summary").focus();
  return true;
}

// In a group of radios the arrows choose.
const isOfRadio = ({ key, target }) => target.matches("input[type=radio]") && (key.startsWith("Arrow") || key === " ");

// The verb of the cause that has the focus, and what folds it.
function cause(part) {
  document.activeElement?.closest("[data-cause]")?.querySelector(part)?.click();
}

// On a conversation to its memory.
function mute() {
  if (document.querySelector("[data-place]")) document.querySelector("[data-pane=memory]")?.focus();
  else cause("[data-mutes]");
}

// In a list the box of the row that has the focus; on a conversation the text or JSON of the selected message.
function open() {
  if (document.querySelector("[data-place]")) press("unfold");
  else document.activeElement?.closest("[data-rows] tr")?.querySelector("[name=id]")?.click();
}

const actions = {
  j: () => move(1),
  k: () => move(-1),
  ArrowLeft: (event) => go(-1, event),
  ArrowRight: (event) => go(1, event),
  "[": (event) => leap("left-before", event),
  "]": (event) => leap("left-after", event),
  " ": () => document.querySelector("[data-place]") && play(),
  p: () => press("pin"),
  s: () => simulate(),
  h: () => document.querySelector("[data-pane=history]")?.focus(),
  m: () => mute(),
  e: () => cause("[data-verb]"),
  f: () => press("filters"),
  x: () => open(),
  "/": () => document.querySelector("[data-search]")?.focus(),
  "?": () => document.querySelector("#keys").togglePopover(),
};

export function bindKeys() {
  document.addEventListener("click", (event) => {
    if (!event.target.closest("[data-simulate]")) return;
    event.preventDefault();
    simulate();
  });
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "Escape") return close(event);
    if (event.target.matches(typing) || isOfRadio(event)) return;
    const action = goes ? { l: () => press("live"), o: () => document.querySelector(".brand").click() }[event.key] : actions[event.key];
    goes = !goes && event.key === "g";
    if (!action || (event.key === " " && event.target.closest("a, button, summary"))) return;
    event.preventDefault();
    if (event.key !== " ") pause();
    action(event);
  });
}
