// Lessons: what is picked is said, the focus goes to a question or its answer, a slider shows its number.
const picks = "input[name=leaves]";

function sayPicked() {
  const place = document.querySelector("[data-picked]");
  if (!place) return;
  const names = [...document.querySelectorAll(`${picks}:checked`)].map((pick) => `#${pick.value}`);
  const last = names.pop();
  if (!last) place.textContent = "";
  else place.textContent = `You picked ${names.length ? `${names.join(", ")} and ${last}` : last}.`;
}

function showLimit(range) {
  range.form.querySelector("output").textContent = Number(range.value).toLocaleString("en");
  for (const field of document.querySelectorAll("[type=hidden][name=limit]")) field.value = range.value;
}

// On a projector, what a remote control sends.
const TURNS = { PageUp: "back", PageDown: "forward", " ": "forward" };

function turn(event) {
  const key = TURNS[event.key];
  if (!key || !document.querySelector("#screen") || event.target.closest("a, button")) return;
  event.preventDefault();
  document.querySelector(`[data-key="${key}"]`)?.click();
}

document.addEventListener("keydown", turn);
document.addEventListener("input", ({ target }) => {
  if (target.matches(picks)) sayPicked();
  else if (target.matches("[data-limits] input[type=range]")) showLimit(target);
});
document.body.addEventListener("htmx:afterSettle", ({ detail }) => {
  sayPicked();
  if (detail.elt.matches("#lesson, #stage")) document.querySelector("[data-focus]")?.focus();
});
sayPicked();
