// What cannot be loaded or done is said on a note; the page stays as it is. Live pages and the feed
// catch up by themselves.
import { pause } from "./play.js";

const REASONS = {
  0: "The server cannot be reached.",
  403: "Your account may not do this, or the page is out of date: reload it.",
  404: "There is no page at this address.",
  413: "The request is larger than the server accepts.",
  429: "There were too many requests at once.",
  503: "The database is not available right now.",
};
let again = null;

export const reason = (status) => REASONS[status] ?? "The server failed and has logged the error.";

const isDeleted = () => document.body.hasAttribute("data-deleted");
const note = () => document.querySelector("[data-fault]");

function words(status, isRead) {
  if (isRead) return `Not loaded. ${reason(status)} The page still shows the earlier content.`;
  return status ? `Nothing was changed. ${reason(status)}` : `${reason(status)} Your change may have been saved: check before you send it again.`;
}

function tell({ detail: { xhr, target, requestConfig, pathInfo } }) {
  if (isDeleted() || requestConfig.elt.matches("[data-live-badge]")) return;
  const isRead = requestConfig.verb === "get";
  const button = note().querySelector("button");
  again = { path: pathInfo.finalRequestPath, target };
  pause();
  note().querySelector("span").textContent = words(xhr.status, isRead);
  button.hidden = !isRead;
  note().hidden = false;
}

// Told by the stream of a conversation, or by the answer to a request for what was of it. It stays told.
function tellDeletion() {
  if (isDeleted()) return;
  document.body.dataset.deleted = "";
  pause();
  note().querySelector("span").textContent = "This conversation was deleted.";
  note().querySelector("button").hidden = true;
  note().querySelector("a").hidden = false;
  note().hidden = false;
}

function retry() {
  htmx.ajax("GET", again.path, { source: again.target, target: again.target });
}

export function bindFaults() {
  document.body.addEventListener("inspector:deleted", tellDeletion);
  document.body.addEventListener("htmx:responseError", tell);
  document.body.addEventListener("htmx:sendError", tell);
  document.body.addEventListener("htmx:afterSwap", ({ target }) => {
    // The verdict on a text comes by itself and says nothing of what failed.
    if (!target.matches("#verdict")) note().hidden = !isDeleted();
  });
  note().querySelector("button").addEventListener("click", retry);
}
