// The choice of conversations: one box chooses all of the page, and the choice stays over pages, filters,
// reload and Back, for as long as the window is open.
const KEY = "chosen";
const chosen = new Set(JSON.parse(sessionStorage.getItem(KEY) ?? "[]"));
// How many of the choice this search does not show, once the server has told it.
let told = { about: "" };

const boxes = () => [...document.querySelectorAll("input[form=bulk][name=id]")];
const form = () => document.querySelector("#bulk");
const every = () => form().querySelector("[data-every]");
const counted = (number) => Number(number).toLocaleString("en");

function words(elsewhere) {
  const total = every().dataset.total;
  if (every().checked) return `All ${total && `${counted(total)} `}selected`;
  const { outside } = told;
  const parts = [`${counted(chosen.size)} selected`];
  if (outside == null && elsewhere) parts.push(`${counted(elsewhere)} not on this page`);
  if (outside < elsewhere) parts.push(`${counted(elsewhere - outside)} on other pages`);
  if (outside) parts.push(`${counted(outside)} not in this search`);
  return parts.join(", ");
}

// Asks once for each search and choice.
async function ask(elsewhere) {
  const about = elsewhere.length ? form().elements.next.value + JSON.stringify(elsewhere) : "";
  if (about === told.about) return;
  const asked = (told = { about, outside: about ? undefined : 0 });
  if (!about) return;
  const body = new FormData(form());
  body.delete("id");
  body.set("action", "count");
  try {
    const answer = await fetch(form().getAttribute("action"), { method: "POST", body });
    if (answer.ok) asked.outside = (await answer.json()).outside;
  } catch {
    return;
  }
  if (told === asked) showChosen();
}

// Ticks what is chosen, says how many, and hands over with the form what other pages have.
export function showChosen() {
  if (!form()) return;
  for (const box of boxes()) box.checked = chosen.has(box.value);
  const here = boxes().map((box) => box.value);
  const elsewhere = [...chosen].filter((id) => !here.includes(id));
  form().toggleAttribute("data-has-chosen", chosen.size > 0 || every().checked);
  form().querySelector("[data-also]").value = JSON.stringify(elsewhere);
  ask(elsewhere);
  form().querySelector("[data-chosen]").textContent = words(elsewhere.length);
  const remove = form().querySelector("[value=delete]");
  const number = every().checked ? every().dataset.total || "all" : chosen.size;
  if (remove) remove.textContent = `Delete ${isNaN(number) ? number : counted(number)}…`;
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
  if (form()) every().checked = false;
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
