// On a phone one pane shows at a time, and the page itself scrolls. The reader's pane and place stand
// through every swap, until something else is asked; who stands at the end goes with it.
import { END, showChosen } from "./panes.js";

const place = () => document.querySelector("[data-place]");
const panes = () => document.querySelector("[data-panes]");
const isOnePane = () => panes()?.querySelector("[role=radiogroup]").offsetHeight > 0;

function stand() {
  const { scrollTop, scrollHeight, clientHeight } = document.documentElement;
  const isAtEnd = scrollTop > 0 && scrollHeight - scrollTop - clientHeight <= END;
  return { asked: place().dataset.asked, tab: panes().querySelector("[name=pane]:checked").id, scrollTop, isAtEnd };
}

function restore({ asked, tab, scrollTop, isAtEnd }) {
  if (asked !== place()?.dataset.asked) return openAsked();
  document.getElementById(tab).checked = true;
  scrollTo(0, isAtEnd ? document.documentElement.scrollHeight : scrollTop);
}

function openAsked() {
  document.getElementById(place().dataset.tab).checked = true;
  showTop();
}

function showTop() {
  if (panes()?.getBoundingClientRect().top < 0) panes().scrollIntoView();
}

// The history opens where it was said last, the others at their beginning.
function open(event) {
  if (event.target.name !== "pane") return;
  showTop();
  if (event.target.id === "pane-h") panes().querySelector("[data-pane=history] [data-seq]:last-child")?.scrollIntoView({ block: "nearest" });
  showChosen();
}

export function bindTabs() {
  let stood = null;
  document.body.addEventListener("htmx:beforeSwap", () => {
    stood = isOnePane() ? stand() : null;
  });
  document.body.addEventListener("htmx:afterSwap", () => stood && restore(stood));
  document.addEventListener("change", open);
}
