// A menu closes when something else is used, and with Escape, which gives the focus back to its name.
const opened = () => [...document.querySelectorAll("[data-menu][open]")];

function closeOthers(event) {
  for (const menu of opened()) if (!menu.contains(event.target)) menu.open = false;
}

export function bindMenus() {
  document.addEventListener("click", closeOthers);
  document.addEventListener("focusin", closeOthers);
  document.addEventListener(
    "keydown",
    (event) => {
      const [menu] = opened();
      if (event.key !== "Escape" || !menu) return;
      menu.open = false;
      menu.querySelector("summary").focus();
      event.stopPropagation();
    },
    { capture: true },
  );
}
