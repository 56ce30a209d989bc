// Switches large type, or the marks of what leaves next, at once; the server keeps the choice in a cookie.
export function bindDisplay() {
  document.body.addEventListener("submit", (event) => {
    const form = event.target.closest("[data-display]");
    if (!form) return;
    event.preventDefault();
    const { display: name, on } = form.dataset;
    const shown = document.documentElement.dataset;
    if (shown[name] === on) delete shown[name];
    else shown[name] = on;
    const body = new FormData(form);
    body.set("switch", name);
    fetch(form.action, { method: "POST", body, redirect: "manual" });
  });
}
