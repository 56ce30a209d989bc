// Follows a stream of numbers that only grow: steps of a conversation, or moments of evictions anywhere.
// The browser comes back by itself after a cut, but not after an answer that is no stream.
const REOPEN_SECONDS = 5;

// `newest()` says what is known already, `moved(number)` hears of more, `shown(isLost)` of the line, and
// `deleted()` of the end, after which nothing is followed.
export function follow(url, { newest, moved, shown, deleted }) {
  const source = new EventSource(`${url}?after=${newest()}`);
  source.addEventListener("open", () => {
    shown(false);
    moved(newest());
  });
  source.addEventListener("error", async () => {
    shown(true);
    if (source.readyState !== EventSource.CLOSED) return;
    const reopening = setTimeout(() => follow(url, { newest, moved, shown, deleted }), REOPEN_SECONDS * 1000);
    if (!deleted || !(await isMissing(url))) return;
    clearTimeout(reopening);
    deleted();
  });
  source.addEventListener("step", (event) => moved(Number(event.data)));
  source.addEventListener("deleted", () => {
    source.close();
    deleted();
  });
}

// An EventSource does not tell why it was refused.
async function isMissing(url) {
  const asking = new AbortController();
  try {
    return (await fetch(url, { signal: asking.signal })).status === 404;
  } catch {
    return false;
  } finally {
    asking.abort();
  }
}

// Set a text, unless it stands already: a new node would be drawn, and read out, again.
export function say(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

// A badge that says whether the line stands.
export function showLine(badge, isLost) {
  if (!badge) return;
  badge.hidden = false;
  badge.classList.toggle("is-lost", isLost);
  say(badge, isLost ? "connection lost, trying again" : "live");
}
