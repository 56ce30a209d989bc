// What is typed stays: the composer's text, role and limit outlive swaps, a reload and Back in this tab,
// until they are previewed or added. A draft that is being edited has a text of its own.
const form = () => document.querySelector("[data-composer]");
const key = ({ draft, trial }) => ["composer", location.pathname, ...(draft ? [trial.value, draft.value] : [])].join(" ");
const differs = (field) => field.value !== field.defaultValue;
const isOfComposer = ({ elt, verb }) => verb === "post" && (elt.form ?? elt) === form();

const recount = () => htmx.trigger("#verdict", "recount");
const tellsProblem = () => Boolean(document.querySelector("#verdict .out"));

function keep() {
  const { elements } = form();
  const { text, role, limit } = elements;
  if (!differs(text) && !differs(limit) && role.value !== "script") return sessionStorage.removeItem(key(elements));
  const kept = { text: text.value, role: role.value, limit: differs(limit) ? limit.value : null };
  sessionStorage.setItem(key(elements), JSON.stringify(kept));
}

// Why the server refused what was written is told until something else is typed.
function restore(isRefused = false) {
  if (!form()) return;
  const { elements } = form();
  const kept = JSON.parse(sessionStorage.getItem(key(elements)));
  if (kept) {
    elements.text.value = kept.text;
    elements.role.value = kept.role;
    if (kept.limit !== null) elements.limit.value = kept.limit;
  }
  if (isRefused && tellsProblem()) return;
  if (elements.text.value.trim() || differs(elements.limit)) recount();
}

// What was previewed or added is part of the page now, and the verdict on it goes, too. Who writes scripts
// goes on with them.
function clear() {
  const { elements } = form();
  sessionStorage.removeItem(key(elements));
  elements.text.value = elements.text.defaultValue = "";
  elements.limit.value = elements.limit.defaultValue;
  if (!elements.draft) keep();
  recount();
}

function writeOn(text) {
  text.focus({ preventScroll: true });
  text.setSelectionRange(text.value.length, text.value.length);
}

const edited = () => form()?.elements.draft?.value;

export function bindComposer() {
  let editedBefore = null;
  document.addEventListener("input", ({ target }) => {
    if (!form() || target.form !== form()) return;
    keep();
    recount();
  });
  // On small screens a composer without the focus is one line: what is pressed above it would move away.
  document.addEventListener("mousedown", (event) => {
    if (event.target.closest("#drafts") && form()?.contains(document.activeElement)) event.preventDefault();
  });
  document.body.addEventListener("htmx:beforeSwap", ({ detail: { requestConfig, xhr } }) => {
    if (form() && isOfComposer(requestConfig) && xhr.status < 300) clear();
    editedBefore = edited();
  });
  document.body.addEventListener("htmx:afterSettle", ({ detail: { target, xhr } }) => {
    if (target?.id === "verdict") return;
    restore(xhr?.status === 422);
    if (edited() !== undefined && edited() !== editedBefore) writeOn(form().elements.text);
    editedBefore = edited();
  });
  document.body.addEventListener("htmx:historyRestore", () => restore());
  restore();
  document.addEventListener("DOMContentLoaded", () => restore()); // htmx listens by then
}
