// A request tells the parts that the page holds, and the response brings those that differ. Between
// the two the page must stay as it was: what answers an older page is not swapped. Of a part that stays,
// only what differs is changed, but for those that are put in as a whole: they move as they come, or
// have what is typed in them.
import { morph } from "./morph.js";

const HEADER = "Held-Parts";

const held = () => [...document.querySelectorAll("[data-part]")].map((part) => `${part.id}:${part.dataset.part}`).join(" ");

function change(event) {
  const { target, fragment } = event.detail;
  const fresh = fragment.firstElementChild;
  if (fresh?.id !== target.id || !fresh.matches("[data-part]:not([data-whole])")) return;
  event.detail.shouldSwap = false;
  morph(target, fresh);
}

export function bindParts() {
  document.body.addEventListener("htmx:oobBeforeSwap", change);
  document.body.addEventListener("htmx:configRequest", ({ detail }) => {
    if (detail.target?.matches("#main")) detail.headers[HEADER] = held();
  });
  document.body.addEventListener("htmx:beforeSwap", ({ detail }) => {
    const isChange = detail.xhr.getResponseHeader("HX-Reswap") === "none";
    if (isChange && detail.requestConfig.headers[HEADER] !== held()) detail.shouldSwap = false;
  });
}
