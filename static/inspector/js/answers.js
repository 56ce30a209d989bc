// A live region that outlives every swap: what a step did is told once, politely.
const region = () => document.querySelector("[data-announce]");

export function announce(words) {
  if (region().textContent !== words) region().textContent = words;
}

// The caption of a step and the answer to a search are told when they become others.
const TOLD = ["[data-caption]", "[data-answer]"];
const told = () => TOLD.map((each) => document.querySelector(each)?.textContent.replace(/\s+/g, " ").trim() ?? "");

function bindAnnounce() {
  let before = told();
  document.body.addEventListener("htmx:afterSettle", () => {
    const now = told();
    const news = now.filter((words, i) => words && words !== before[i]);
    before = now;
    if (news.length) announce(news.join(" "));
  });
}

// Who asked for something is brought to the answer: the focus goes there. On a phone the composer comes
// into view as a whole, with its buttons.
const ASKING = "#find, #composer, #drafts";
const ANSWERS = [".why__q", "#verdict"];

function show() {
  const answers = ANSWERS.map((each) => document.querySelector(each));
  const answer = answers.find((each) => each?.offsetParent);
  answer?.focus({ preventScroll: true });
  answer?.closest(".writing")?.scrollIntoView({ block: "nearest" });
}

function bindFocus() {
  let isAsked = false;
  document.body.addEventListener("htmx:beforeSwap", ({ detail: { requestConfig, xhr } }) => {
    isAsked = Boolean(requestConfig.elt.matches?.(ASKING)) && xhr.status < 300;
  });
  document.body.addEventListener("htmx:afterSettle", () => {
    if (isAsked) show();
    isAsked = false;
  });
}

export function bindAnswers() {
  bindAnnounce();
  bindFocus();
}
