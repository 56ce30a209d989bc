// The tape answers at once: what it shows of a step needs no server. Who opens pages hears `inspector:go` on
// the document: `detail` has the step, and the page's address if it is that of a cell.
const MARGIN_CELLS = 2;
// In pixels: the space beside a label below the strip.
const BESIDE = 4;
let frame = 0;

const find = (selector) => document.querySelector(selector);
const cells = () => [...document.querySelectorAll("[data-cells] > li")];
const number = (name) => Number(find("[data-overview]").dataset[name]);
const firstStep = () => number("first");
// In a simulation the playhead stands at the last draft, so many cells behind the step.
const drafts = () => number("at") - Number(find("[data-place]").dataset.at);

export function go(step, url) {
  document.dispatchEvent(new CustomEvent("inspector:go", { detail: { step, url } }));
}

// The step under the pointer, or at which the scrubber stands.
export function stepAt(event) {
  if (event.target.matches("[data-scrub]")) return Number(event.target.value);
  const cell = event.target.closest("[data-cells] > li:not(.is-draft)");
  return cell && firstStep() + cells().indexOf(cell);
}

// Moves the playhead, its flag and the number of the step; the panes follow when their page arrives.
export function showStep(step) {
  if (!find("[data-overview]")) return;
  const words = step.toLocaleString("en");
  find("[data-step] b").textContent = words;
  find("[data-scrub]").value = step;
  moveInChart(step + drafts());
  moveInStrip(step + drafts(), drafts() ? "draft" : words);
}

function moveInChart(step) {
  find("#past rect").setAttribute("width", step);
  find("#later rect").setAttribute("x", step);
  find("[data-head]").setAttribute("d", `M${step} 0V${find("[data-bracket]").getAttribute("height")}`);
}

// Where the strip has not the step, the bracket goes to it before the cells do.
function moveInStrip(step, words) {
  const first = firstStep();
  const list = cells();
  const head = find("[data-playhead]");
  const isHere = step >= first - (first === 1 ? 1 : 0) && step < first + list.length;
  head.hidden = !isHere;
  if (!isHere) return moveBracket(step - number("at"));
  moveBracket(0);
  head.classList.toggle("is-start", step < first);
  head.querySelector("b").textContent = words;
  list[Math.max(0, step - first)].append(head);
  if (!frame) frame = requestAnimationFrame(look);
}

// What is measured before the browser paints is laid out once, with all that a step changes.
function look() {
  frame = 0;
  if (!find("[data-playhead]:not([hidden])")) return;
  reveal();
  uncover();
}

function moveBracket(by) {
  const span = cells().length;
  const last = number("last");
  if (!find("[data-zoom]")) return;
  const begin = Math.min(Math.max(firstStep() - 1 + by, 0), last - span);
  find("[data-bracket]").setAttribute("x", begin);
  find("[data-zoom]").setAttribute("d", `M${begin} 0L0 8H${last}L${begin + span} 0z`);
}

// A number below the flag is not seen through it. A name that the edge of the strip would cut moves into view; where it
// has no room there, or is a number, it is hidden.
function uncover() {
  const view = find("[data-strip]").getBoundingClientRect();
  const labels = [...document.querySelectorAll("[data-strip] text")];
  for (const label of labels) label.style.translate = "";
  const boxes = labels.map((label) => label.getBoundingClientRect());
  const flag = find("[data-playhead]:not([hidden]) b")?.getBoundingClientRect();
  const isCut = ({ left, right }) => right > view.left && left < view.right && (left < view.left || right > view.right);
  const taken = boxes.filter((box) => !isCut(box));
  if (flag) taken.push(flag);
  boxes.forEach((box, i) => {
    const label = labels[i];
    if (!isCut(box)) return label.classList.toggle("is-covered", Boolean(flag) && touches(box, flag));
    const by = box.left < view.left ? view.left - box.left + BESIDE : view.right - box.right - BESIDE;
    const moved = { left: box.left + by, right: box.right + by };
    const isHidden = /\d/.test(label.textContent) || taken.some((other) => touches(moved, other));
    label.classList.toggle("is-covered", isHidden);
    if (isHidden) return;
    label.style.translate = `${by}px`;
    taken.push(moved);
  });
}

function touches(one, other) {
  return one.left < other.right + BESIDE && one.right > other.left - BESIDE;
}

// On a narrow screen the strip scrolls: the playhead stays in view, and the bracket marks what is.
function reveal() {
  const strip = find("[data-strip]");
  const head = find("[data-playhead]");
  if (!strip || head.hidden || strip.scrollWidth <= strip.clientWidth) return;
  const margin = MARGIN_CELLS * head.parentElement.offsetWidth;
  const place = head.getBoundingClientRect().left - strip.getBoundingClientRect().left;
  if (place < 2 * margin || place > strip.clientWidth - 2 * margin) strip.scrollLeft += place - strip.clientWidth * 0.75;
}

function markView() {
  const bracket = find("[data-bracket]");
  const { left, right, width } = find("[data-cells]").getBoundingClientRect();
  const view = find("[data-strip]").getBoundingClientRect();
  const span = cells().length;
  const begin = (Math.max(0, view.left - left) / width) * span;
  const end = span - (Math.max(0, right - view.right) / width) * span;
  bracket.setAttribute("x", firstStep() - 1 + begin);
  bracket.setAttribute("width", end - begin);
  bracket.toggleAttribute("data-idle", end - begin === span && !find("[data-zoom]"));
}

function showView() {
  if (!find("[data-strip]")) return;
  markView();
  uncover();
}

function settle(place) {
  const strip = find("[data-strip]");
  if (!strip) return;
  strip.scrollLeft = place?.first === firstStep() ? place.left : 0;
  reveal();
  showView();
  strip.addEventListener("scroll", showView, { passive: true });
}

function follow(event) {
  const step = event.target.closest("[data-cells]") && stepAt(event);
  if (step === null || step === false || event.button || event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  showStep(step);
  go(step, event.target.closest("a, li").closest("li").querySelector("a").getAttribute("href"));
}

function submit(event) {
  if (!event.target.matches("[data-go]")) return;
  event.preventDefault();
  go(Number(new FormData(event.target).get("at")));
}

// While it is dragged the playhead goes along; the page follows once it is let go.
export function bindTape() {
  let place = null;
  document.addEventListener("input", (event) => {
    if (event.target.matches("[data-scrub]")) showStep(stepAt(event));
  });
  document.addEventListener("change", (event) => {
    if (event.target.matches("[data-scrub]")) go(stepAt(event));
  });
  document.addEventListener("click", follow);
  document.addEventListener("submit", submit);
  document.body.addEventListener("htmx:beforeSwap", () => {
    const strip = find("[data-strip]");
    place = strip && { first: firstStep(), left: strip.scrollLeft };
  });
  document.body.addEventListener("htmx:afterSettle", () => settle(place));
  window.addEventListener("resize", showView);
  settle(null);
}
