// A list starts at its end; the last hit of a search, then a selection, scroll into view. Through every
// swap the reader stays: who stands at the end goes with it, others see the same message at the same
// height, with the same focus.
export const END = 8;

const panes = () => [...document.querySelectorAll("[data-pane]")];
const asked = () => document.querySelector("[data-place]")?.dataset.asked;

export function showChosen() {
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

export function bindPanes() {
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
