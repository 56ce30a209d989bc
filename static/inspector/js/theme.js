// Switches the theme at once and keeps the choice in the cookie that the server reads.
const dark = window.matchMedia("(prefers-color-scheme: dark)");

function current() {
  return document.documentElement.dataset.theme || (dark.matches ? "dark" : "light");
}

export function bindTheme() {
  document.body.addEventListener("submit", (event) => {
    const form = event.target.closest("[data-theme-form]");
    if (!form) return;
    event.preventDefault();
    const theme = current() === "dark" ? "light" : "dark";
    const body = new FormData(form);
    body.set("theme", theme);
    document.documentElement.dataset.theme = theme;
    // Also if another page is opened meanwhile
    fetch(form.action, { method: "POST", body, redirect: "manual", keepalive: true });
  });
}
