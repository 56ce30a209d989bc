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

export function bindAnswers() {
  let isAsked = false;
  document.body.addEventListener("htmx:beforeSwap", ({ detail: { requestConfig, xhr } }) => {
    isAsked = Boolean(requestConfig.elt.matches?.(ASKING)) && xhr.status < 300;
  });
  document.body.addEventListener("htmx:afterSettle", () => {
    if (isAsked) show();
    isAsked = false;
  });
}
