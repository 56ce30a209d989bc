// Moves the playhead by itself, and by dragging: every stop is a link that the page has anyway.
const SECONDS_PER_STEP = 0.7;
let playing = false;
let timer = 0;
let speed = 1;

function step() {
  const forward = document.querySelector('a[data-key="forward"]');
  if (forward) forward.click();
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
  wait();
  show();
}

const stop = (range) => document.querySelectorAll("[data-cells] > li")[range.value - 1];
const address = (cell) => cell?.querySelector("a").getAttribute("href")?.replace(/&msg=\d+/, "");

// While it is dragged the playhead goes along; the page follows once it is let go.
function drag(range) {
  const cell = stop(range);
  const head = document.querySelector("[data-playhead]");
  if (!address(cell) || !head) return;
  const step = Number(new URL(address(cell), location).searchParams.get("at"));
  cell.append(head);
  head.querySelector("b").textContent = step.toLocaleString("en");
  document.querySelector("#past rect").setAttribute("width", range.value);
  document.querySelector("#later rect").setAttribute("x", range.value);
  document.querySelector("[data-step] b").textContent = step.toLocaleString("en");
}

function scrub(range) {
  const link = address(stop(range));
  if (link) htmx.ajax("GET", link, { source: "#main", target: "#main", swap: "outerHTML" });
}

export function bindPlay() {
  document.addEventListener("click", (event) => {
    if (event.target.closest("[data-play]")) play();
    else if (event.isTrusted) pause();
  });
  document.addEventListener("input", (event) => {
    if (event.target.matches("[data-scrub]")) drag(event.target);
  });
  document.addEventListener("change", (event) => {
    if (event.target.matches("[data-scrub]")) scrub(event.target);
    if (!event.target.matches("[data-speed]")) return;
    speed = Number(event.target.value);
    wait();
  });
  document.body.addEventListener("htmx:afterSettle", () => {
    show();
    wait();
  });
}
