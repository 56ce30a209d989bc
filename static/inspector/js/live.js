// A page at the live end moves as messages arrive; who reads in the past, or is writing, is only told.
// The server sends step numbers, so what was missed or doubled on the way does not matter.
const REOPEN_SECONDS = 5;
const FIELDS = "#main :is(textarea, select, input:not([type=radio], [type=range]))";
let source = null;
let newest = 0;
let shown = 0;

const main = () => document.querySelector("[data-conversation]");
const badge = () => document.querySelector("[data-live-badge]");

function isWriting() {
  const form = document.querySelector("[data-composer]");
  const limit = form?.elements.limit;
  return (
    Boolean(document.activeElement?.matches(FIELDS)) ||
    Boolean(form?.elements.text.value.trim()) ||
    limit?.value !== limit?.defaultValue
  );
}

function show() {
  const isLost = source.readyState !== EventSource.OPEN;
  badge().hidden = false;
  badge().classList.toggle("is-lost", isLost);
  badge().textContent = isLost ? "connection lost, trying again" : "live";
}

function tell(count) {
  const note = document.querySelector("[data-news]");
  note.hidden = count <= 0;
  note.querySelector("b").textContent = `${count} new step${count === 1 ? "" : "s"}`;
}

// Bring the page to the newest step, or say how many steps it is behind. A request under way comes
// first: what it brings is looked at again.
function catchUp() {
  const page = main();
  if (!page || page.querySelector(".htmx-request")) return;
  const behind = Math.max(0, newest - Number(page.dataset.steps));
  const follows = page.dataset.live === "" && !page.hasAttribute("data-simulation") && !isWriting();
  tell(follows ? 0 : behind);
  if (follows && behind) htmx.trigger(badge(), "catch-up");
}

// One step moves; a jump over several is shown as it ends. Before the browser paints.
function settle() {
  const page = main();
  if (!page) return;
  const at = Number(page.dataset.at);
  if (Math.abs(at - shown) > 1) page.setAttribute("data-jump", "");
  shown = at;
  show();
}

// The browser comes back by itself after a cut, but not after an answer that is no stream.
function open() {
  source = new EventSource(`${main().dataset.url}live/?after=${newest}`);
  source.addEventListener("open", () => {
    show();
    catchUp();
  });
  source.addEventListener("error", () => {
    show();
    if (source.readyState === EventSource.CLOSED) setTimeout(open, REOPEN_SECONDS * 1000);
  });
  source.addEventListener("step", (event) => {
    newest = Math.max(newest, Number(event.data));
    catchUp();
  });
}

export function bindLive() {
  if (!main()) return;
  newest = Number(main().dataset.steps);
  shown = Number(main().dataset.at);
  open();
  document.body.addEventListener("htmx:afterSwap", settle);
  document.body.addEventListener("htmx:historyRestore", settle);
  document.body.addEventListener("htmx:afterSettle", catchUp);
  document.addEventListener("focusout", () => setTimeout(catchUp));
}
