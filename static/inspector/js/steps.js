// What is wanted: a step, a message. Keys, buttons, play, rows and the tape set it. The playhead goes
// there at once; one request at a time fetches the page, and then what was wanted last meanwhile is next.
import { showStep } from "./tape.js";

let wanted = null;
let sent = null;
let isUnderWay = false;
let waiting = [];

const place = () => document.querySelector("[data-place]");
const shownStep = () => Number(place().dataset.at);
const isOnMain = ({ detail }) => Boolean(detail.target?.matches("#main"));

export const currentStep = () => wanted?.step ?? shownStep();
export const currentChoice = () => wanted?.chosen ?? place().dataset.chosen;
export const lastStep = () => Number(place().dataset.steps);

// The address keeps what the page shows already: its step, selection, search and comparison.
function address({ step, chosen }) {
  const query = new URLSearchParams(new FormData(document.querySelector("#place")));
  if (step !== null) query.set("at", step);
  for (const [name, number] of new URLSearchParams(chosen ?? place().dataset.chosen)) query.set(name, number);
  return `${document.querySelector("#main").dataset.url}?${query}`;
}

// Back leads to where a movement began, so that the steps on its way have no entries of their own.
function ask() {
  if (isUnderWay || wanted === null) return;
  const history = wanted.continues ? { push: "false", replace: "true" } : {};
  sent = wanted;
  const request = htmx.ajax("GET", address(wanted), { source: "#main", target: "#main", ...history });
  request.catch(() => {}); // faults.js says what failed
}

// What only the page that is on its way can tell, such as where messages left before it, waits for it.
// A key that is held asks for one at a time: nothing goes on long after it is released.
export function whenShown(action, isRepeat = false) {
  if (isRepeat && waiting.length) return;
  waiting.push(action);
  goOn();
}

function goOn() {
  while (waiting.length && wanted === null && !isUnderWay) waiting.shift()();
  ask();
}

function want(change, continues) {
  wanted = { step: null, chosen: null, ...wanted, ...change, continues: continues || wanted !== null };
  moveAhead();
  ask();
}

function moveAhead() {
  if (wanted !== null && wanted.step !== null) showStep(wanted.step);
}

export function goTo(step, continues = false) {
  const to = Math.min(Math.max(step, 0), lastStep());
  if (to !== currentStep()) want({ step: to }, continues);
}

// Moves on from the step that is wanted, not from the one that the panes have reached.
export function move(steps, continues = false) {
  goTo(currentStep() + steps, continues);
}

// A form sends the step that is wanted; a link leads where it says.
function configure({ detail }) {
  if (wanted === null || detail.elt.id === "main") return;
  waiting = [];
  if (wanted.step !== null && detail.parameters.at) detail.parameters.at = wanted.step;
  wanted = null;
}

function arrived() {
  isUnderWay = false;
  if (wanted === sent) wanted = null;
  sent = null;
  setTimeout(goOn);
}

function failed() {
  wanted = null;
  waiting = [];
  showStep(shownStep());
}

// A cell of the tape chooses its message too.
function follow({ step, url }) {
  const msg = new URLSearchParams(url?.split("?")[1]).get("msg");
  if (msg) want({ step, chosen: `msg=${msg}` });
  else goTo(step);
}

// A click on a row chooses its message, unless it selects text.
function hitOf(target) {
  const row = target.closest("[data-seq]");
  if (!row || target.closest("a, button, input, summary") || !document.getSelection().isCollapsed) return null;
  return row.querySelector(".hit");
}

function press(event) {
  const control = event.target.closest("[data-step-to], [data-step-by], .hit") || hitOf(event.target);
  if (!control || event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  const { stepTo, stepBy } = control.dataset;
  if (stepTo) goTo(Number(stepTo));
  else if (stepBy) move(Number(stepBy));
  else want({ chosen: `${control.name}=${control.value}` });
}

const EVENTS = {
  configRequest: configure,
  beforeSend: () => (isUnderWay = true),
  afterSwap: moveAhead,
  responseError: failed,
  afterRequest: arrived,
  sendError: failed,
};

export function bindSteps() {
  if (!place()) return;
  for (const [name, handle] of Object.entries(EVENTS)) {
    document.body.addEventListener(`htmx:${name}`, (event) => isOnMain(event) && handle(event));
  }
  document.body.addEventListener("htmx:historyCacheMiss", () => (wanted = null));
  document.addEventListener("inspector:go", ({ detail }) => follow(detail));
  document.addEventListener("click", press);
}
