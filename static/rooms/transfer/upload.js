// A file can be dropped on the import page. While it is sent a bar grows; while the server works the bar
// moves without an end, and the button waits. What goes wrong is said above the form, which stays as it
// was filled in.
import { reason } from "../../inspector/js/faults.js";

const AGAIN = "Importing the same file again is safe.";
let isBusy = false;
let timer = 0;

const form = () => document.querySelector("[data-import]");
const part = (name) => form().querySelector(`[data-${name}]`);

function tell(problem) {
  const note = part("problem");
  note.hidden = !problem;
  note.textContent = problem;
  if (problem) note.scrollIntoView({ block: "nearest" });
}

function wait(isWaiting) {
  isBusy = isWaiting;
  clearInterval(timer);
  const bar = part("bar");
  part("submit").disabled = isWaiting;
  part("working").hidden = !isWaiting;
  bar.hidden = !isWaiting;
  bar.value = 0;
  part("working").textContent = "Sending the file…";
}

// The file has arrived. How many conversations it has is not known, but how many are stored and examined.
function work() {
  const started = performance.now();
  part("bar").removeAttribute("value");
  part("working").textContent = "The file has arrived and is being imported.";
  timer = setInterval(async () => {
    const done = await examined();
    const seconds = Math.round((performance.now() - started) / 1000);
    if (isBusy) part("working").textContent = `The file has arrived and is being imported: ${seconds} s. ${done}`;
  }, 5000);
}

// How many conversations with the ids of this import are examined, in words.
async function examined() {
  const [file] = part("drop").querySelector("input").files;
  const which = new URLSearchParams({ begin: form().elements.begin.value, file: file?.name ?? "" });
  try {
    const answer = await fetch(`${form().dataset.examined}?${which}`);
    const words = new DOMParser().parseFromString(await answer.text(), "text/html").querySelector("#examined span");
    return words ? `${words.textContent.trim()}.` : "";
  } catch {
    return "";
  }
}

function answered(request) {
  wait(false);
  const isHere = new URL(request.responseURL).pathname === new URL(form().action).pathname;
  const answer = new DOMParser().parseFromString(request.responseText, "text/html");
  if (!isHere) return tell("You are signed out. Sign in in another window, then reload this page.");
  if (request.status === 200) return show(answer);
  if (request.status === 413) return tell(form().dataset.tooLarge);
  const why = request.status === 422 && answer.querySelector("[data-problem]")?.textContent.trim();
  tell(why || `${reason(request.status)} ${AGAIN}`);
}

function show(answer) {
  document.querySelector("main").replaceWith(answer.querySelector("main"));
  document.title = answer.title;
  htmx.process(document.querySelector("main"));
  document.querySelector("main").focus();
}

function send(event) {
  event.preventDefault();
  if (isBusy) return;
  const request = new XMLHttpRequest();
  tell("");
  wait(true);
  request.upload.addEventListener("progress", ({ loaded, total }) => (part("bar").value = loaded / total));
  request.upload.addEventListener("load", work);
  request.addEventListener("load", () => answered(request));
  request.addEventListener("error", () => {
    wait(false);
    tell(`The connection was lost. A part may have been imported. ${AGAIN}`);
  });
  request.open("POST", form().action);
  request.send(new FormData(form()));
}

if (form()) {
  const input = part("drop").querySelector("input");
  document.addEventListener("dragover", (event) => event.preventDefault());
  document.addEventListener("drop", (event) => {
    event.preventDefault();
    if (event.dataTransfer.files.length) input.files = event.dataTransfer.files;
  });
  form().addEventListener("submit", send);
  addEventListener("beforeunload", (event) => isBusy && event.preventDefault());
}
