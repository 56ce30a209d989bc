// Who asked for something is brought to the answer: the focus goes there.
const ASKING = "#find, #composer, #drafts";
const ANSWERS = [".why__q", "#verdict"];

function show() {
  const answers = ANSWERS.map((each) => document.querySelector(each));
  answers.find((each) => each?.offsetParent)?.focus({ preventScroll: true });
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
