// The keyboard map; off while someone types.
const typing = "input:not([type=radio]), textarea, select, [contenteditable]";
let goes = false;

function press(key) {
  document.querySelector(`[data-key="${key}"]`)?.click();
}

function move(direction) {
  const rows = [...document.querySelectorAll("[data-pane=history] [data-seq]")];
  const chosen = rows.findIndex((row) => row.classList.contains("is-sel"));
  const next = chosen < 0 ? rows.at(direction > 0 ? 0 : -1) : rows[chosen + direction];
  next?.querySelector("a.hit").click();
}

const actions = {
  j: () => move(1),
  k: () => move(-1),
  ArrowLeft: () => press("back"),
  ArrowRight: () => press("forward"),
  Escape: () => press("clear"),
  h: () => document.querySelector("[data-pane=history]")?.focus(),
  m: () => document.querySelector("[data-pane=memory]")?.focus(),
  "/": () => document.querySelector("[data-search]")?.focus(),
  "?": () => document.querySelector("#keys").togglePopover(),
};

export function bindKeys() {
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.target.matches(typing)) return;
    const action = goes ? { l: () => press("live"), o: () => location.assign("/") }[event.key] : actions[event.key];
    goes = !goes && event.key === "g";
    if (!action) return;
    event.preventDefault();
    action();
  });
}
