// A list starts at its end; a selection scrolls into view.
export function settlePanes(root) {
  const scope = root.closest?.("main") ?? document;
  for (const pane of scope.querySelectorAll(".scroll-end")) pane.scrollTop = pane.scrollHeight;
  for (const chosen of scope.querySelectorAll(".pane__body .is-sel")) {
    chosen.scrollIntoView({ block: "nearest" });
  }
}
