// A request tells the parts that the page holds, and the response brings those that differ. Between
// the two the page must stay as it was: what answers an older page is not swapped.
const HEADER = "Held-Parts";

const held = () => [...document.querySelectorAll("[data-part]")].map((part) => `${part.id}:${part.dataset.part}`).join(" ");

export function bindParts() {
  document.body.addEventListener("htmx:configRequest", ({ detail }) => {
    if (detail.target?.matches("#main")) detail.headers[HEADER] = held();
  });
  document.body.addEventListener("htmx:beforeSwap", ({ detail }) => {
    const isChange = detail.xhr.getResponseHeader("HX-Reswap") === "none";
    if (isChange && detail.requestConfig.headers[HEADER] !== held()) detail.shouldSwap = false;
  });
}
