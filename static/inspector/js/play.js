// Moves on by itself, from the start again when it stands at the end, until something is pressed.
import { currentStep, goTo, lastStep, move } from "./steps.js";

const SECONDS_PER_STEP = 0.7;
let playing = false;
let timer = 0;
let speed = 1;

function step() {
  if (currentStep() < lastStep()) move(1, true);
  else pause();
}

// The next step waits until this one is on the page: on a slow line playing slows down.
function wait() {
  clearTimeout(timer);
  if (playing) timer = setTimeout(step, (SECONDS_PER_STEP * 1000) / speed);
}

function show() {
  const button = document.querySelector("[data-play]");
  button?.setAttribute("aria-pressed", String(playing));
  button?.setAttribute("aria-label", playing ? "Pause" : "Play");
  const select = document.querySelector("[data-speed]");
  if (select) select.value = String(speed);
}

export function pause() {
  playing = false;
  clearTimeout(timer);
  show();
}

export function play() {
  if (playing) return pause();
  playing = true;
  if (currentStep() === lastStep()) goTo(0);
  wait();
  show();
}

export function bindPlay() {
  document.addEventListener("click", (event) => {
    if (event.target.closest("[data-play]")) play();
    else if (event.isTrusted) pause();
  });
  document.addEventListener("change", (event) => {
    if (!event.target.matches("[data-speed]")) return;
    speed = Number(event.target.value);
    wait();
  });
  document.body.addEventListener("htmx:afterSettle", () => {
    show();
    wait();
  });
}
