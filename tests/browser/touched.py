"""Scripts that count the nodes that a change of a page adds, removes or alters.

COUNT begins anew, and TOUCHED returns the three numbers. What is added or removed counts with all
that is inside.
"""

COUNT = """() => {
  const elements = node => node.nodeType === 1 ? 1 + node.querySelectorAll("*").length : 1;
  const altered = new Set();
  window.touched = { added: 0, removed: 0, altered };
  window.counting?.disconnect();
  window.counting = new MutationObserver(changes => changes.forEach(change => {
    for (const node of change.addedNodes) window.touched.added += elements(node);
    for (const node of change.removedNodes) window.touched.removed += elements(node);
    if (change.type !== "childList") altered.add(change.target);
  }));
  window.counting.observe(document.querySelector("#main"),
    { subtree: true, childList: true, attributes: true, characterData: true });
}"""

TOUCHED = "() => ({ ...window.touched, altered: window.touched.altered.size })"
