// What takes longer than a moment is marked busy; the old content stays readable meanwhile.
const MOMENT = 300;
let timer = 0;

const regions = () => document.querySelectorAll("[data-busy]");

export function bindBusy() {
  document.body.addEventListener("htmx:beforeRequest", () => {
    clearTimeout(timer);
    timer = setTimeout(() => regions().forEach((region) => region.setAttribute("aria-busy", "true")), MOMENT);
  });
  document.body.addEventListener("htmx:afterRequest", () => {
    clearTimeout(timer);
    regions().forEach((region) => region.removeAttribute("aria-busy"));
  });
}
