// The overview moves as conversations change: its numbers, its rows, and the feed of what leaves memory.
// They are fetched anew after a change, at most twice a second and seldom from a slow server, so that a
// cut or a crowd of changes loses and doubles nothing. Rows that are in use change where they are.
import { announce } from "../../inspector/js/answers.js";
import { showChosen } from "../../inspector/js/bulk.js";
import { morph, morphChildren } from "../../inspector/js/morph.js";
import { follow, showLine } from "./stream.js";

const LEAST = 500;
const SHARE = 4;
const AFTER_FAULT = 5000;
// Without a change, only the words for times grow old.
const IDLE = 30000;
// Rows that were held are put in order soon after.
const HELD = 3000;
const ADDRESS_MOST = 8000;
let newest = 0;
let settled = 0;
let isPaused = false;
let isLost = true;
let isAsking = false;
let wait = LEAST;
let timer = 0;
let due = Infinity;

const feed = () => document.querySelector("[data-feed]");
const table = () => document.querySelector("#conversation-table");
const rows = () => table().querySelector("[data-rows]");
// What was heard of before the page was asked for is in it, also a deletion, which leaves an older moment.
const seen = () => Math.max(settled, Number(table().dataset.newest));
// Numbers that lack the last change say when they are counted again.
const recount = () => Math.max(LEAST, Number(table().querySelector("[data-stats]")?.dataset.recount ?? IDLE));

function show() {
  showLine(feed().querySelector("[data-feed-badge]"), isLost);
  const button = feed().querySelector("[data-feed-pause]");
  button.setAttribute("aria-pressed", String(isPaused));
  button.setAttribute("aria-label", isPaused ? "Resume live updates" : "Pause live updates");
}

// Whether rows must not move: someone points at them, has ticked or focused one, reads further down,
// or is on a later page.
function isHeld() {
  const body = rows();
  if (!body) return false;
  const isRead = body.matches(":hover") || body.contains(document.activeElement) || body.querySelector(":checked");
  const isFurther = body.closest("[data-busy]").scrollTop > 0 || body.getBoundingClientRect().top < 0;
  return Boolean(isRead || isFurther || table().querySelector("[data-newer]"));
}

function address(held) {
  const asked = new URLSearchParams(location.search);
  asked.set("seen", feed().dataset.newest);
  for (const row of held ? rows().children : []) {
    if (`${asked}`.length < ADDRESS_MOST) asked.append("id", row.dataset.id);
  }
  return `${feed().dataset.url}?${asked}`;
}

async function refresh() {
  due = Infinity;
  if (isPaused || document.hidden) return;
  const asked = table();
  const held = isHeld();
  const started = performance.now();
  const heard = newest;
  isAsking = true;
  const fresh = await load(address(held));
  isAsking = false;
  wait = Math.max(LEAST, SHARE * (performance.now() - started));
  if (!fresh) return later(AFTER_FAULT);
  // What the reader asked for meanwhile comes first.
  if (table() === asked && !document.querySelector(".htmx-request")) {
    put(fresh, held);
    settled = heard;
  }
  later(newest > seen() ? wait : Math.min(recount(), held ? HELD : IDLE));
}

async function load(url) {
  try {
    const answer = await fetch(url, { headers: { "HX-Request": "true", "HX-Current-URL": location.href } });
    const signIn = answer.headers.get("HX-Redirect");
    if (signIn) location.assign(signIn);
    const page = new DOMParser().parseFromString(answer.ok ? await answer.text() : "", "text/html");
    return page.querySelector("[data-now]");
  } catch {
    return null;
  }
}

function put(fresh, held) {
  putFeed(fresh);
  const freshRows = fresh.querySelector("[data-rows]");
  if (Boolean(rows()) !== freshRows.children.length > 0) return whole();
  for (const part of ["[data-stats]", "[data-chips]", "[data-found]", "[data-pager]"]) {
    const now = fresh.querySelector(part);
    if (now) morph(table().querySelector(part), now);
  }
  if (rows()) putRows(freshRows, !held && isHeld());
  table().dataset.newest = fresh.dataset.newest;
  showChosen();
}

// With `keeps`, the rows stay where they are and no others come.
function putRows(freshRows, keeps) {
  if (!keeps) return morphChildren(rows(), freshRows);
  for (const row of rows().children) {
    const fresh = [...freshRows.children].find((each) => each.dataset.id === row.dataset.id);
    if (fresh) morph(row, fresh);
  }
}

// A redaction or a deletion changes the feed, too. What left last is marked until something else leaves.
function putFeed(fresh) {
  const list = feed().querySelector("[data-leaving]");
  const freshList = fresh.querySelector("[data-leaving]");
  const isMoved = fresh.dataset.left !== feed().dataset.newest;
  feed().dataset.newest = fresh.dataset.left;
  const marked = isMoved ? [] : [...list.querySelectorAll(".is-new")].map((item) => item.dataset.id);
  for (const item of freshList.children) if (marked.includes(item.dataset.id)) item.classList.add("is-new");
  const hadFocus = list.contains(document.activeElement);
  morphChildren(list, freshList);
  if (hadFocus && document.activeElement === document.body) list.focus();
  if (!isMoved) return;
  const count = list.querySelectorAll(".is-new:not([data-again])").length;
  if (count) announce(`${count} message${count === 1 ? "" : "s"} left memory`);
}

// The first conversation of a selection, or the last one, is gone: the table as a whole.
function whole() {
  htmx.ajax("GET", location.href, { source: table(), target: table(), swap: "outerHTML" });
}

// A refresh that is due sooner is not put off.
function later(after) {
  const at = performance.now() + after;
  if (isAsking || at >= due) return;
  clearTimeout(timer);
  due = at;
  timer = setTimeout(refresh, after);
}

function moved(moment) {
  newest = Math.max(newest, moment);
  if (newest > seen()) later(wait);
}

export function bindOverview() {
  if (!feed()) return;
  newest = seen();
  later(Math.min(recount(), IDLE));
  follow(feed().dataset.liveUrl, {
    newest: seen,
    moved,
    kept: () => later(wait),
    shown: (lost) => {
      isLost = lost;
      show();
    },
  });
  document.addEventListener("click", (event) => {
    if (!event.target.closest("[data-feed-pause]")) return;
    isPaused = !isPaused;
    show();
    later(0);
  });
  document.addEventListener("visibilitychange", () => later(0));
}
