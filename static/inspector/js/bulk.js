// The choice of conversations: one box chooses all of the page, and the choice stays over pages, filters,
// reload and Back, for as long as the window is open.
const KEY = "chosen";
const chosen = new Set(JSON.parse(sessionStorage.getItem(KEY) ?? "[]"));

const boxes = () => [...document.querySelectorAll("input[form=bulk][name=id]")];
const form = () => document.querySelector("#bulk");

function words(elsewhere) {
  const every = form().querySelector("[data-every]");
  const total = every.dataset.total && `${Number(every.dataset.total).toLocaleString("en")} `;
  if (every.checked) return `All ${total}selected`;
  return `${chosen.size.toLocaleString("en")} selected${elsewhere ? `, ${elsewhere} on other pages` : ""}`;
}

// Ticks what is chosen, says how many, and hands over with the form what other pages have.
export function showChosen() {
  if (!form()) return;
  for (const box of boxes()) box.checked = chosen.has(box.value);
  const here = boxes().map((box) => box.value);
  const elsewhere = [...chosen].filter((id) => !here.includes(id));
  form().toggleAttribute("data-has-chosen", chosen.size > 0 || form().querySelector("[data-every]").checked);
  form().querySelector("[data-chosen]").textContent = words(elsewhere.length);
  form().querySelector("[data-also]").value = JSON.stringify(elsewhere);
  const all = document.querySelector("[data-check-all]");
  if (!all) return;
  all.checked = here.every((id) => chosen.has(id));
  all.indeterminate = !all.checked && here.some((id) => chosen.has(id));
}

function keep() {
  sessionStorage.setItem(KEY, JSON.stringify([...chosen]));
  showChosen();
}

function choose({ target }) {
  if (target.matches("[data-every]")) return showChosen();
  const isAll = target.matches("[data-check-all]");
  if (!isAll && !target.matches("input[form=bulk][name=id]")) return;
  for (const box of isAll ? boxes() : [target]) chosen[target.checked ? "add" : "delete"](box.value);
  keep();
}

function clear() {
  chosen.clear();
  if (form()) form().querySelector("[data-every]").checked = false;
  keep();
}

export function bindBulk() {
  document.addEventListener("change", choose);
  document.addEventListener("click", (event) => event.target.closest("[data-clear]") && clear());
  document.addEventListener("submit", (event) => event.target.matches("[data-deletes]") && clear());
  document.body.addEventListener("htmx:afterSettle", showChosen);
  addEventListener("pageshow", showChosen);
  showChosen();
}
