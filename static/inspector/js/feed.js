// The overview's feed of what leaves memory. It is fetched anew when something left, at most twice a
// second, so that a cut or a crowd of evictions loses and doubles nothing.
import { announce } from "./announce.js";
import { follow, showLine } from "./stream.js";

const SECONDS_BETWEEN = 0.5;
let newest = 0;
let isPaused = false;
let isLost = true;
let isWaiting = false;

const feed = () => document.querySelector("[data-feed]");
const seen = () => Number(feed().dataset.newest);

function show() {
  showLine(feed().querySelector("[data-feed-badge]"), isLost);
  const button = feed().querySelector("[data-feed-pause]");
  button.setAttribute("aria-pressed", String(isPaused));
  button.setAttribute("aria-label", isPaused ? "Resume the feed" : "Pause the feed");
}

async function refresh() {
  isWaiting = false;
  if (isPaused || newest <= seen()) return;
  const before = seen();
  const hadFocus = feed().contains(document.activeElement);
  await htmx.ajax("GET", `${feed().dataset.url}?seen=${seen()}`, { target: "[data-feed]", swap: "outerHTML" });
  show();
  if (hadFocus) feed().querySelector("ol").focus();
  const count = feed().querySelectorAll(".is-new").length;
  if (count) announce(`${count} message${count === 1 ? "" : "s"} left memory`);
  if (seen() > before) later();
}

function later() {
  if (isWaiting) return;
  isWaiting = true;
  setTimeout(refresh, SECONDS_BETWEEN * 1000);
}

export function bindFeed() {
  if (!feed()) return;
  newest = seen();
  follow(feed().dataset.liveUrl, {
    newest: seen,
    moved: (moment) => {
      newest = Math.max(newest, moment);
      if (newest > seen()) later();
    },
    shown: (lost) => {
      isLost = lost;
      show();
    },
  });
  document.addEventListener("click", (event) => {
    if (!event.target.closest("[data-feed-pause]")) return;
    isPaused = !isPaused;
    show();
    later();
  });
}
