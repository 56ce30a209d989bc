// A page at the live end moves as messages arrive; who reads in the past, or is writing, is only told.
// The server sends step numbers, so what was missed or doubled on the way does not matter.
import { morph } from "../../inspector/js/morph.js";
import { follow, say, showLine } from "./stream.js";

const FIELDS = "#main :is(textarea, select, input:not([type=radio], [type=range]))";
const RETRY = 2000;
let newest = 0;
let shown = 0;
let isLost = true;
let isKept = false;

const main = () => document.querySelector("[data-conversation]");
const place = () => document.querySelector("[data-place]");
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

// Who writes at the live end is not moved, and sees so.
function showFollowing() {
  const link = document.querySelector("[data-follow]");
  if (link) say(link, isWriting() ? "Waits while you write" : "Following");
}

function tell(count) {
  const note = document.querySelector("[data-news]");
  note.hidden = count <= 0;
  say(note.querySelector("b"), `${count} new step${count === 1 ? "" : "s"}`);
}

// Bring the page to the newest step, or say how many steps it is behind. A request under way comes
// first: what it brings is looked at again.
function catchUp() {
  const page = main();
  if (!page || page.querySelector(".htmx-request")) return;
  const behind = Math.max(0, newest - Number(place().dataset.steps));
  const follows = place().dataset.live === "" && !page.hasAttribute("data-simulation") && !isWriting();
  tell(follows ? 0 : behind);
  showFollowing();
  if (follows && behind) htmx.trigger(badge(), "catch-up");
}

const isBusy = () => Boolean(main()?.querySelector(".htmx-request")) || isWriting();

// What is derived of the newest step was kept: a page that shows this step is read again. It gives way to
// what its reader asks for meanwhile, so it is no request of HTMX, which would take the place of another.
async function renew() {
  const page = main();
  if (!page || place().dataset.live !== "" || page.hasAttribute("data-simulation")) return;
  isKept = isBusy();
  if (isKept) return;
  const asked = location.href;
  const fresh = await load(badge().getAttribute("hx-get"));
  isKept = Boolean(fresh) && isBusy();
  if (!fresh || isKept || main() !== page || location.href !== asked) return;
  morph(page, fresh);
  settle();
}

async function load(url) {
  try {
    const answer = await fetch(url, { headers: { "HX-Request": "true", "HX-Current-URL": location.href } });
    const read = new DOMParser().parseFromString(answer.ok ? await answer.text() : "", "text/html");
    return read.querySelector("[data-conversation]");
  } catch {
    return null;
  }
}

function afterRequest({ detail }) {
  if (!detail.successful) return;
  catchUp();
  if (isKept) renew();
}

// One step moves; a jump over several is shown as it ends. Before the browser paints.
function settle() {
  const page = main();
  if (!page) return;
  const at = Number(place().dataset.at);
  if (at !== shown) page.toggleAttribute("data-jump", Math.abs(at - shown) > 1);
  shown = at;
  showLine(badge(), isLost);
}

// The stream stays while a server starts anew or its database waits: what failed is asked for again.
function retry({ detail: { xhr, requestConfig } }) {
  const mayPass = xhr.status === 0 || xhr.status >= 500;
  if (mayPass && requestConfig.elt === badge()) setTimeout(catchUp, RETRY);
}

export function bindConversation() {
  if (!main()) return;
  newest = Number(place().dataset.steps);
  shown = Number(place().dataset.at);
  follow(main().dataset.liveUrl, {
    newest: () => newest,
    moved: (step) => {
      newest = Math.max(newest, step);
      catchUp();
    },
    kept: renew,
    shown: (lost) => {
      isLost = lost;
      showLine(badge(), lost);
    },
    deleted: () => htmx.trigger(document.body, "inspector:deleted"),
  });
  document.body.addEventListener("htmx:afterSwap", settle);
  document.body.addEventListener("htmx:historyRestore", settle);
  document.body.addEventListener("htmx:historyRestore", catchUp);
  document.body.addEventListener("htmx:afterRequest", afterRequest);
  document.body.addEventListener("htmx:responseError", retry);
  document.body.addEventListener("htmx:sendError", retry);
  document.addEventListener("focusout", () => setTimeout(catchUp));
  for (const name of ["focusin", "input"]) document.addEventListener(name, showFollowing);
}
