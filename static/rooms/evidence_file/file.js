"use strict";
// Moves through the steps of an evidence file. All texts are set as texts.
const data = JSON.parse(document.getElementById("data").textContent);
const messages = new Map(data.messages.map((each) => [each.seq, each]));
const steps = new Map(data.steps.map((each) => [each.n, each]));
const [first, last] = [data.steps[0].n, data.steps.at(-1).n];
const at = (name) => document.querySelector(`[data-${name}]`);
let now = Math.min(Math.max(data.at, first), last);
let chosen = null;

function element(name, css, ...children) {
  const made = document.createElement(name);
  if (css) made.className = css;
  made.append(...children);
  return made;
}

// A text, with what is masked in it as marks
function marked(text) {
  return text.split(/(\[redacted [^\]]*\])/).map((part, n) => (n % 2 ? element("span", "redacted", part.slice(1, -1)) : part));
}

function shape(css, places) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", "rect");
  for (const [name, value] of Object.entries({ class: css, ...places })) made.setAttribute(name, value);
  return made;
}

const holds = (message, n) => message.times.some(([entered, left]) => entered <= n && (left === null || left > n));
const isSaid = (message, n) => message.times.length > 0 && message.times[0][0] <= n;

function leftAt(message, n) {
  const ended = message.times.filter(([, left]) => left !== null && left <= n).map(([, left]) => left);
  return holds(message, n) || !ended.length ? null : Math.max(...ended);
}

// The placeholder of a cleared result in memory after step n: its first step, end, tokens and text
const stubAt = (message, n) => message.stubs.find(([entered, left]) => entered <= n && (left === null || left > n));

// The message as memory has it after step n
function inMemory(message, n) {
  const [, , tokens, text] = stubAt(message, n) ?? [null, null, message.tokens, message.text];
  return { ...message, tokens, text };
}

// The message's tool call is not answered, so that the model does not see it: words, and why
const unseenAt = (message, n) => steps.get(n)?.unseen.find(([seq]) => seq === message.seq);

function fateOf(message, n) {
  const [left, [since] = []] = [leftAt(message, n), stubAt(message, n)];
  if (unseenAt(message, n)) return unseenAt(message, n)[1];
  if (left) return `left memory at step ${left.toLocaleString("en")}`;
  return since ? `result cleared in memory since step ${since.toLocaleString("en")}` : "";
}

function line(message, amount) {
  const button = element("button", "", `#${message.seq}`);
  button.type = "button";
  button.addEventListener("click", () => choose(message.seq));
  const text = element("span", message.code ? "mono" : "", ...marked(message.text.slice(0, 300)));
  text.dir = "auto";
  return element("li", "led", button, text, element("span", "", amount));
}

function lifeOf(message, leaving) {
  const isIn = holds(message, now) && !unseenAt(message, now);
  const life = !isSaid(message, now) ? "is-later" : isIn ? "is-in" : "is-out";
  return leaving.has(message.seq) ? `${life} is-leaving` : life;
}

function showHistory(leaving) {
  let start = null;
  let isBelow = false;
  for (const row of document.querySelectorAll("[data-history] > .said")) {
    const message = messages.get(Number(row.dataset.seq));
    const classes = ["said", `r-${message.glyph}`, lifeOf(message, leaving), message.seq === chosen ? "is-sel" : ""];
    row.className = classes.filter(Boolean).join(" ");
    row.hidden = !message.said;
    row.querySelector("[data-tag]").textContent = fateOf(message, now);
    isBelow ||= classes[2].startsWith("is-out");
    if (classes[2] === "is-in" && isBelow && !row.hidden) start ??= row;
  }
  const horizon = at("horizon");
  horizon.hidden = !start;
  if (start) start.before(horizon);
}

// The beginning of memory is in view at each step
function scrollHistory() {
  const pane = document.querySelector(".history");
  const place = at("horizon").hidden ? 0 : at("horizon").offsetTop - pane.clientHeight / 2;
  pane.scrollTop = Math.max(0, place);
}

function showTape(leaving) {
  const said = data.messages.filter((message) => message.said);
  const cells = said.map((message, n) =>
    shape(`cell r-${message.glyph} ${lifeOf(message, leaving)}`, { x: 10 * n + 1, width: 8, y: 0, height: 10 }));
  at("tape").setAttribute("viewBox", `0 0 ${10 * said.length} 10`);
  at("tape").replaceChildren(...cells);
}

function showBudget(kept, { limit, free }) {
  const sums = data.kinds.map(([, , glyphs]) =>
    kept.reduce((sum, { glyph, tokens }) => sum + (glyphs.includes(glyph) ? tokens : 0), 0));
  const used = sums.reduce((sum, each) => sum + each, 0);
  const whole = Math.max(data.unit === "tok" && limit ? limit : 0, used, 1);
  const rect = (css, x, width) => shape(css, { x, width, height: 16 });
  const parts = [rect("b-free", 0, 1000)];
  let start = 0;
  data.kinds.forEach(([, css], n) => {
    const width = (1000 * sums[n]) / whole;
    parts.push(rect(css, start, width));
    start += width;
  });
  at("bar").replaceChildren(...parts);
  const words = data.kinds.map(([name], n) => `${name} ${sums[n].toLocaleString("en")} tok`);
  const rest = free === null ? [] : [`free ${free.toLocaleString("en")} tok`];
  at("key").textContent = [...words.filter((_, n) => sums[n]), ...rest].join(" · ");
}

function sumsOf(step) {
  const rows = step.sums.map(([label, amount, kind, isSub]) => {
    const sign = amount < 0 ? "−" : kind === "plus" ? "+" : "";
    const shown = sign + Math.abs(amount).toLocaleString("en");
    const css = [data.lines[kind], isSub && data.lines.sub].filter(Boolean).join(" ");
    return element("tr", css, element("td", "", label), element("td", "", shown));
  });
  return element("table", "", element("tbody", "", ...rows));
}

function whyOf(message, left, stub, step) {
  const unseen = unseenAt(message, now);
  if (unseen) return [element("h3", "", `Why does the model not see #${message.seq}?`), element("p", "", unseen[2])];
  const why = (left ? step?.left : step?.cleared)?.find(({ seq }) => seq === message.seq)?.why;
  const heading = left ? `Why did #${message.seq} leave?` : stub ? `Why was the result of #${message.seq} cleared?` : `#${message.seq}`;
  const answer = left ? `It left at step ${left}.` : stub ? `It is cleared in memory since step ${stub[0]}.` : "It is in memory.";
  return [element("h3", "", heading), element("p", "", why ?? answer)];
}

function showWhy() {
  const message = messages.get(chosen);
  const [left, stub] = message ? [leftAt(message, now), stubAt(message, now)] : [null, null];
  const step = steps.get(message ? left ?? stub?.[0] ?? -1 : now);
  const parts = [];
  if (!message) {
    parts.push(element("h3", "", "What happened at this step?"), element("p", "", step.words));
  } else {
    parts.push(...whyOf(message, left, stub, step));
  }
  if (step?.sums.length) parts.push(sumsOf(step));
  at("why").replaceChildren(...parts);
}

// The newest incident whose term had left by now
function showIncident() {
  const cards = [...document.querySelectorAll("[data-incident]")];
  const newest = cards.findLast((card) => Number(card.dataset.incident) <= now);
  for (const card of cards) card.hidden = card !== newest;
}

function justLeft(step, gone) {
  const tokens = gone.reduce((sum, { tokens: each }) => sum + each, 0);
  const when = step.arrived.length === 1 ? ` when #${step.arrived[0]} arrived` : "";
  const amount = element("span", "", `−${tokens.toLocaleString("en")}`);
  const heading = element("li", "led", element("b", "", "Left memory"), element("span", "", when), amount);
  heading.classList.add("is-heading");
  return heading;
}

function show() {
  const step = steps.get(now);
  const held = data.messages.filter((message) => holds(message, now)).map((each) => inMemory(each, now));
  const kept = held.filter((message) => !unseenAt(message, now));
  const leaving = new Map(step.left.map((each) => [each.seq, each]));
  at("now").textContent = now.toLocaleString("en");
  at("range").value = now;
  at("words").textContent = step.words;
  at("load").textContent = step.held;
  const gone = step.left.map(({ seq }) => messages.get(seq)).filter(Boolean).map((each) => inMemory(each, now - 1));
  const lines = gone.map((each) => line(each, `−${each.tokens.toLocaleString("en")}`));
  at("left").replaceChildren(...(gone.length ? [justLeft(step, gone), ...lines] : []));
  const rows = held.map((each) => line(each, each.tokens.toLocaleString("en")));
  held.forEach((each, n) => rows[n].classList.toggle("is-out", Boolean(unseenAt(each, now))));
  at("memory").replaceChildren(...rows);
  showHistory(leaving);
  showTape(leaving);
  showIncident();
  showBudget(kept, step);
  showWhy();
}

function go(n) {
  now = Math.min(Math.max(n, first), last);
  show();
  scrollHistory();
}

function choose(seq) {
  chosen = seq === chosen ? null : seq;
  show();
}

const KEYS = { ArrowLeft: () => go(now - 1), ArrowRight: () => go(now + 1), Home: () => go(first), End: () => go(last) };

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || !KEYS[event.key]) return;
  event.preventDefault();
  KEYS[event.key]();
});
document.addEventListener("click", (event) => {
  const by = event.target.closest("[data-by]");
  const to = event.target.closest("[data-go]");
  const row = event.target.closest("[data-history] > .said");
  if (by) go(now + Number(by.dataset.by));
  else if (to) go(Number(to.dataset.go));
  else if (row && document.getSelection().isCollapsed) choose(Number(row.dataset.seq));
});
at("range").addEventListener("input", ({ target }) => go(Number(target.value)));

document.body.classList.add("is-stepping");
for (const hidden of document.querySelectorAll("[hidden]")) hidden.hidden = false;
for (const text of document.querySelectorAll(".said__text, h1 > *, .incident :is(q, code)")) text.replaceChildren(...marked(text.textContent));
go(now);
