// A button that copies the full text of the message under the pointer, or with the focus.
const SHOWN_MS = 2000;
const LONG = "…";
let button = null;

function show(event) {
  const row = event.target.closest(".said, .led");
  if (!row?.dataset.seq || Number(row.dataset.seq) < 1 || row.contains(button)) return;
  button.disabled = false;
  row.append(button);
}

// A row shows the beginning of a long text, and the name of a tool before its result: the text itself
// comes from the API.
async function textOf(row) {
  const line = row.querySelector(".said__text, .led__text");
  const shown = line.textContent;
  if (row.matches(".said") && !line.matches(".mono") && !shown.includes(LONG)) return shown;
  const address = document.querySelector("#said").dataset.texts.replace(/0\/$/, `${row.dataset.seq}/`);
  const answer = await fetch(address, { headers: { Accept: "application/json" } });
  return (answer.ok && (await answer.json()).text) || shown;
}

async function copy() {
  const row = button.closest("[data-seq]");
  await navigator.clipboard.writeText(await textOf(row));
  button.disabled = true;
  document.querySelector("[data-announce]").textContent = `Copied #${row.dataset.seq}`;
  setTimeout(() => (button.disabled = false), SHOWN_MS);
}

export function bindCopying() {
  const template = document.querySelector("#copy");
  if (!template || !navigator.clipboard) return;
  button = template.content.firstElementChild.cloneNode(true);
  button.addEventListener("click", copy);
  document.addEventListener("pointerover", show);
  document.addEventListener("focusin", show);
}
