// A live region that outlives every swap: what a step did is told once, politely.
const region = () => document.querySelector("[data-announce]");

export function announce(words) {
  if (region().textContent !== words) region().textContent = words;
}

export function bindAnnounce() {
  document.body.addEventListener("htmx:afterSettle", () => {
    const caption = document.querySelector("[data-caption]");
    if (caption) announce(caption.textContent.trim());
  });
}
