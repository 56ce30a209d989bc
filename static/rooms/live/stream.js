// Follows a stream of numbers that only grow: steps of a conversation, or moments of evictions anywhere.
// The browser comes back by itself after a cut, but not after an answer that is no stream.
// Only a page that is shown follows: over HTTP/1.1 a browser opens six connections to a site, for all
// of its pages together. One that is shown again hears at once of what it missed.
const REOPEN_SECONDS = 5;

// `newest()` says what is known already, `moved(number)` hears of more, `kept()` that something derived
// was kept, `shown(isLost)` of the line, and `deleted()` of the end, after which nothing is followed.
export function follow(url, { newest, moved, kept, shown, deleted }) {
  let source = null;
  let reopening = 0;
  let hasEnded = false;

  function close() {
    clearTimeout(reopening);
    source?.close();
    source = null;
  }

  function end() {
    hasEnded = true;
    close();
    deleted();
  }

  async function lost() {
    shown(true);
    if (source.readyState !== EventSource.CLOSED) return;
    close();
    reopening = setTimeout(open, REOPEN_SECONDS * 1000);
    if (deleted && (await isMissing(url))) end();
  }

  function open() {
    if (source || hasEnded || document.hidden) return;
    clearTimeout(reopening);
    const asked = new URL(url, location.href);
    asked.searchParams.set("after", newest());
    source = new EventSource(asked);
    source.addEventListener("open", () => {
      shown(false);
      moved(newest());
    });
    source.addEventListener("error", lost);
    source.addEventListener("step", (event) => moved(Number(event.data)));
    source.addEventListener("kept", kept);
    source.addEventListener("deleted", end);
  }

  open();
  document.addEventListener("visibilitychange", () => (document.hidden ? close() : open()));
  addEventListener("pagehide", close);
  addEventListener("pageshow", open);
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
  say(badge, isLost ? "reconnecting" : "live");
}
