// The file of a lesson: one of its pages at a time, by the address after #, and the picks of an answer.
"use strict";

const main = document.querySelector("main");
const FIRST = "step-1";

function shown(name) {
  const page = document.getElementById(name);
  if (page?.tagName !== "TEMPLATE") return false;
  main.replaceChildren(page.content.cloneNode(true));
  const focus = main.querySelector("[data-focus]") ?? main;
  if (location.hash) focus.focus({ preventScroll: false });
  return true;
}

function follow() {
  const name = location.hash.slice(1);
  if (name.startsWith("m")) return; // a message on the page
  if (!shown(name)) shown(FIRST);
}

// Answers are compared with what the core did when the file was made.
function answered(form, button) {
  const step = `step-${form.elements.step.value}`;
  if (button.name === "answer") {
    location.hash = `${step}-${button.value}`;
    return;
  }
  const boxes = [...main.querySelectorAll("input[name=leaves]:checked")];
  const picked = button.value === "none" ? [] : boxes.map((box) => box.value);
  if (!picked.length && button.value !== "none") {
    main.querySelector("[data-picked]")?.replaceChildren("Pick the messages first.");
    return;
  }
  history.pushState(null, "", `#${step}-picked`);
  shown(`${step}-picked`);
  marked(new Set(picked), document.getElementById(`${step}-picked`).dataset.leaving.split(" "));
}

function marked(picked, leaving) {
  const key = new Set(leaving.filter(Boolean));
  const isRight = picked.size === key.size && [...picked].every((seq) => key.has(seq));
  if (isRight) return;
  const lesson = main.querySelector("[data-wrong]");
  lesson.querySelector(".answer").classList.remove("answer--right");
  lesson.querySelector(".answer__headline").textContent = lesson.dataset.wrong;
  for (const row of lesson.querySelectorAll(".pick")) {
    const seq = row.querySelector(".no").textContent.slice(1);
    const box = row.querySelector(".box") ?? row.appendChild(document.createElement("span"));
    const isPicked = picked.has(seq);
    if (isPicked === key.has(seq)) continue;
    box.className = "box is-miss";
    box.textContent = isPicked ? lesson.dataset.leaves : lesson.dataset.stays;
  }
}

function said() {
  const place = main.querySelector("[data-picked]");
  const names = [...main.querySelectorAll("input[name=leaves]:checked")].map((box) => `#${box.value}`);
  if (place) place.textContent = names.length ? `You picked ${names.join(", ")}.` : "";
}

main.addEventListener("submit", (event) => event.preventDefault());
main.addEventListener("input", said);
main.addEventListener("click", (event) => {
  const button = event.target.closest("button[name=answer], button[name=check]");
  if (!button) return;
  event.preventDefault();
  answered(main.querySelector("form.ask"), button);
});
addEventListener("hashchange", follow);
follow();
