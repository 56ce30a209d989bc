// A list starts at its end; the last hit of a search, then a selection, scroll into view.
export function settlePanes(root) {
  const scope = root.closest?.("main") ?? document;
  for (const pane of scope.querySelectorAll(".scroll-end")) pane.scrollTop = pane.scrollHeight;
  const hit = [...scope.querySelectorAll(".pane--history .is-hit")].at(-1);
  for (const chosen of [hit, ...scope.querySelectorAll(".pane__body .is-sel")]) {
    chosen?.scrollIntoView({ block: "nearest" });
  }
}
