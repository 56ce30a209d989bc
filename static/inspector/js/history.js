// Back and Forward: the last press wins. What was under way before it does not come on the page any more.
let underWay = null;

function supersede({ detail: { xhr } }) {
  underWay?.abort();
  underWay = xhr;
  for (const asking of document.querySelectorAll(".htmx-request")) htmx.trigger(asking, "htmx:abort");
}

export function bindHistory() {
  document.body.addEventListener("htmx:historyCacheMiss", supersede);
}
