// A list starts at its end; the last hit of a search, then a selection, scroll into view. A page that
// moves by itself leaves the reader where they were: same message, same height, same focus.
export const END = 8;

export function settlePanes(root) {
  const scope = root.closest?.("main") ?? document;
  for (const pane of scope.querySelectorAll(".scroll-end")) pane.scrollTop = pane.scrollHeight;
  const hit = [...scope.querySelectorAll(".pane--history .is-hit")].at(-1);
  for (const chosen of [hit, ...scope.querySelectorAll(".pane__body .is-sel")]) {
    chosen?.scrollIntoView({ block: "nearest" });
  }
}

// Where a pane stands: at the end of its list, at the first message in view, or so many pixels down.
function place(pane) {
  const name = pane.dataset.pane;
  const box = pane.getBoundingClientRect();
  const rows = [...pane.querySelectorAll("[data-seq]")];
  if (rows.length && pane.scrollHeight - pane.scrollTop - box.height <= END) return { name, isAtEnd: true };
  const row = rows.find((each) => each.getBoundingClientRect().bottom > box.top);
  return { name, seq: row?.dataset.seq, top: row ? row.getBoundingClientRect().top - box.top : pane.scrollTop };
}

function restore({ name, isAtEnd, seq, top }) {
  const pane = document.querySelector(`[data-pane=${name}]`);
  const row = pane?.querySelector(`[data-seq="${seq}"]`);
  if (row) pane.scrollTop += row.getBoundingClientRect().top - pane.getBoundingClientRect().top - top;
  else if (pane) pane.scrollTop = isAtEnd ? pane.scrollHeight : seq ? 0 : top;
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
  let places = null;
  let focus = null;
  document.body.addEventListener("htmx:beforeSwap", (event) => {
    const isLive = event.detail.requestConfig?.elt?.matches?.("[data-live-badge]");
    places = isLive ? [...document.querySelectorAll("[data-pane]")].map(place) : null;
    focus = focused();
  });
  document.body.addEventListener("htmx:afterSettle", (event) => {
    if (places) places.forEach(restore);
    else settlePanes(event.detail.elt);
    if (focus && document.activeElement === document.body) document.querySelector(focus)?.focus({ preventScroll: true });
    places = null;
    focus = null;
  });
  settlePanes(document);
}
