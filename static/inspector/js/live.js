// A page at the live end moves as messages arrive; a reader in the past is only told.
// The server sends step numbers, so what was missed or doubled on the way does not matter.
let source = null;
let newest = 0;

const main = () => document.querySelector("[data-conversation]");
const isBusy = () => {
  const text = document.querySelector("[data-composer] textarea");
  return main().hasAttribute("data-simulation") || Boolean(text?.value.trim());
};

function show(state) {
  const badge = document.querySelector("[data-live-badge]");
  if (!badge) return;
  badge.hidden = false;
  badge.classList.toggle("is-lost", state === "lost");
  badge.textContent = state === "lost" ? "connection lost, trying again" : "live";
}

function tell(count) {
  const note = document.querySelector("[data-news]");
  note.hidden = count <= 0;
  note.querySelector("b").textContent = `${count} new step${count === 1 ? "" : "s"}`;
}

// Bring the page to the newest step, or say how many steps it is behind.
function catchUp() {
  const page = main();
  if (!page) return;
  const behind = newest - Number(page.dataset.steps);
  if (page.dataset.live === "" && behind > 0 && !isBusy()) {
    const jump = behind > 1 ? "1" : "";
    htmx.ajax("GET", page.dataset.url, { target: "#main", swap: "outerHTML" }).then(() => {
      if (jump) main()?.setAttribute("data-jump", "");
    });
  } else {
    tell(Math.max(0, behind));
  }
}

function follow() {
  const page = main();
  if (!page) return;
  newest = Math.max(newest, Number(page.dataset.steps));
  if (source) return;
  source = new EventSource(`${page.dataset.url}live/?after=${page.dataset.steps}`);
  source.addEventListener("open", () => show("live"));
  source.addEventListener("error", () => show("lost"));
  source.addEventListener("step", (event) => {
    newest = Math.max(newest, Number(event.data));
    catchUp();
  });
}

export function bindLive() {
  follow();
  document.body.addEventListener("htmx:afterSettle", () => {
    if (!main()) return;
    show(source?.readyState === EventSource.OPEN ? "live" : "lost");
    catchUp();
  });
}
