// A list starts at its end; the last hit of a search, then a selection, scroll into view. A page that
// moves by itself leaves the reader where they were: same message, same height, same focus.
const END = 8;

export function settlePanes(root) {
  const scope = root.closest?.("main") ?? document;
  for (const pane of scope.querySelectorAll(".scroll-end")) pane.scrollTop = pane.scrollHeight;
  const hit = [...scope.querySelectorAll(".pane--history .is-hit")].at(-1);
  for (const chosen of [hit, ...scope.querySelectorAll(".pane__body .is-sel")]) {
    chosen?.scrollIntoView({ block: "nearest" });
  }
}

// Where a pane stands: the first message in view, unless it stands at its end.
function place(pane) {
  const box = pane.getBoundingClientRect();
  if (pane.scrollHeight - pane.scrollTop - box.height <= END) return null;
  const row = [...pane.querySelectorAll("[data-seq]")].find((each) => each.getBoundingClientRect().bottom > box.top);
  return row ? { pane: pane.dataset.pane, seq: row.dataset.seq, top: row.getBoundingClientRect().top - box.top } : null;
}

function restore({ pane, seq, top }) {
  const there = document.querySelector(`[data-pane=${pane}]`);
  const row = there?.querySelector(`[data-seq="${seq}"]`);
  if (row) there.scrollTop += row.getBoundingClientRect().top - there.getBoundingClientRect().top - top;
}

// The link that has the focus, as it can be found again after a swap.
function focused() {
  const link = document.activeElement;
  if (!link?.closest("#main") || link.id) return null;
  const row = link.closest("[data-seq]");
  const pane = link.closest("[data-pane]")?.dataset.pane;
  return row && pane ? `[data-pane=${pane}] [data-seq="${row.dataset.seq}"] a` : pane ? `[data-pane=${pane}]` : null;
}

export function bindPanes() {
  let places = [];
  let focus = null;
  document.body.addEventListener("htmx:beforeSwap", (event) => {
    const isLive = event.detail.requestConfig?.elt?.matches?.("[data-live-badge]");
    places = isLive ? [...document.querySelectorAll("[data-pane]")].map(place).filter(Boolean) : [];
    focus = focused();
  });
  document.body.addEventListener("htmx:afterSettle", (event) => {
    settlePanes(event.detail.elt);
    places.forEach(restore);
    if (focus && document.activeElement === document.body) document.querySelector(focus)?.focus({ preventScroll: true });
    places = [];
    focus = null;
  });
  settlePanes(document);
}
