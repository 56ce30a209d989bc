// A list starts at its end; the last hit of a search, then a selection, scroll into view. Through every
// swap the reader stays: who stands at the end goes with it, others see the same message at the same
// height, with the same focus.
const END = 8;

const panes = () => [...document.querySelectorAll("[data-pane]")];
const asked = () => document.querySelector("[data-place]")?.dataset.asked;

function showChosen() {
  const hit = [...document.querySelectorAll(".pane--history .is-hit")].at(-1);
  for (const chosen of [hit, ...document.querySelectorAll(".pane__body .is-sel")]) {
    chosen?.scrollIntoView({ block: "nearest" });
  }
}

function begin() {
  for (const pane of document.querySelectorAll(".pane__body")) pane.scrollTop = pane.scrollHeight;
  showChosen();
}

// Where a pane stands: at the end of its list, at the first message in view, or so many pixels down.
function standing(pane) {
  const name = pane.dataset.pane;
  const box = pane.getBoundingClientRect();
  const rows = [...pane.querySelectorAll("[data-seq]")];
  if (rows.length && pane.scrollHeight - pane.scrollTop - box.height <= END) return { name, isAtEnd: true };
  const row = rows.find((each) => each.getBoundingClientRect().bottom > box.top);
  const top = row ? row.getBoundingClientRect().top - box.top : pane.scrollTop;
  return { name, seq: Number(row?.dataset.seq), top };
}

// Of a list without the message that was first in view the nearer end is shown.
function stand({ name, isAtEnd, seq, top }) {
  const pane = document.querySelector(`[data-pane=${name}]`);
  if (!pane) return;
  const rows = [...pane.querySelectorAll("[data-seq]")];
  const row = rows.find((each) => Number(each.dataset.seq) === seq);
  const isBehind = Number(rows.at(-1)?.dataset.seq) < seq;
  if (row) pane.scrollTop += row.getBoundingClientRect().top - pane.getBoundingClientRect().top - top;
  else if (isAtEnd || isBehind) pane.scrollTop = pane.scrollHeight;
  else pane.scrollTop = seq ? 0 : top;
}

// The pane in which something has the focus: it gets it where that is gone after a swap.
const focused = () => document.activeElement?.closest("#main [data-pane]")?.dataset.pane;

function bindLists() {
  let before = null;
  document.body.addEventListener("htmx:beforeSwap", () => {
    before = { places: panes().map(standing), asked: asked(), focus: focused() };
  });
  document.body.addEventListener("htmx:afterSettle", () => {
    if (!before) return;
    const { places, focus, asked: askedBefore } = before;
    before = null;
    places.forEach(stand);
    if (asked() !== askedBefore) showChosen();
    if (focus && document.activeElement === document.body) {
      document.querySelector(`[data-pane=${focus}]`)?.focus({ preventScroll: true });
    }
  });
  document.body.addEventListener("htmx:historyRestore", begin);
  begin();
}

// On a phone one pane shows at a time, and the page itself scrolls. The reader's pane and place stand
// through every swap, until something else is asked; who stands at the end goes with it.
const place = () => document.querySelector("[data-place]");
const chooser = () => document.querySelector("[data-panes]");
const isOnePane = () => chooser()?.querySelector("[role=radiogroup]").offsetHeight > 0;

function standingTab() {
  const { scrollTop, scrollHeight, clientHeight } = document.documentElement;
  const isAtEnd = scrollTop > 0 && scrollHeight - scrollTop - clientHeight <= END;
  return { asked: place().dataset.asked, tab: chooser().querySelector("[name=pane]:checked").id, scrollTop, isAtEnd };
}

function restore({ asked, tab, scrollTop, isAtEnd }) {
  if (asked !== place()?.dataset.asked) return openAsked();
  document.getElementById(tab).checked = true;
  scrollTo(0, isAtEnd ? document.documentElement.scrollHeight : scrollTop);
}

function openAsked() {
  document.getElementById(place().dataset.tab).checked = true;
  showTop();
}

function showTop() {
  if (chooser()?.getBoundingClientRect().top < 0) chooser().scrollIntoView();
}

// The history opens where it was said last, the others at their beginning.
function open(event) {
  if (event.target.name !== "pane") return;
  showTop();
  if (event.target.id === "pane-h") chooser().querySelector("[data-pane=history] [data-seq]:last-child")?.scrollIntoView({ block: "nearest" });
  showChosen();
}

function bindTabs() {
  let stood = null;
  document.body.addEventListener("htmx:beforeSwap", () => {
    stood = isOnePane() ? standingTab() : null;
  });
  document.body.addEventListener("htmx:afterSwap", () => stood && restore(stood));
  document.addEventListener("change", open);
}

export function bindPanes() {
  bindLists();
  bindTabs();
}
