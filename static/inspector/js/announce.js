// A live region that outlives every swap: what a step did is told once, politely.
const region = () => document.querySelector("[data-announce]");

export function announce(words) {
  if (region().textContent !== words) region().textContent = words;
}

// The caption of a step and the answer to a search are told when they become others.
const TOLD = ["[data-caption]", "[data-answer]"];
const told = () => TOLD.map((each) => document.querySelector(each)?.textContent.replace(/\s+/g, " ").trim() ?? "");

export function bindAnnounce() {
  let before = told();
  document.body.addEventListener("htmx:afterSettle", () => {
    const now = told();
    const news = now.filter((words, i) => words && words !== before[i]);
    before = now;
    if (news.length) announce(news.join(" "));
  });
}
