// One box chooses every conversation on the page.
export function bindBulk() {
  document.addEventListener("change", (event) => {
    if (!event.target.matches("[data-check-all]")) return;
    for (const box of document.querySelectorAll("input[form=bulk][name=id]")) box.checked = event.target.checked;
  });
}
