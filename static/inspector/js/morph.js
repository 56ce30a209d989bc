// Makes elements equal to fresh ones, and changes only what differs: focus, what is typed, open details,
// the pointer and the place of a list stay with what is still there. Children are told apart by their id or
// data-id; those without, by their order and their name.

// What scripts write into an element marked data-kept stays until the server sends another one.
const sent = new WeakMap();

const keyOf = (node) => node.id || node.dataset?.id;
const isSame = (old, fresh) => old.nodeName === fresh.nodeName && keyOf(old) === keyOf(fresh);

export function morph(old, fresh) {
  if (isSame(old, fresh)) change(old, fresh);
  else adopt(fresh, (node) => old.replaceWith(node));
}

function change(old, fresh) {
  if (isKept(old, fresh) || old.isEqualNode(fresh)) return;
  if (old.nodeType !== Node.ELEMENT_NODE) {
    old.nodeValue = fresh.nodeValue;
    return;
  }
  morphAttributes(old, fresh);
  if (!old.matches("textarea")) morphChildren(old, fresh);
  else if (old.defaultValue !== fresh.defaultValue) old.value = old.defaultValue = fresh.defaultValue;
}

function isKept(old, fresh) {
  if (fresh.dataset?.kept === undefined) return false;
  const isAsBefore = sent.get(old) === fresh.outerHTML;
  sent.set(old, fresh.outerHTML);
  return isAsBefore;
}

// Reads what the server has sent, before scripts change it.
export function remember(page) {
  for (const kept of page.querySelectorAll("[data-kept]")) sent.set(kept, kept.outerHTML);
}

// HTMX reads the address of a link once, so it has to read another one. Details stay as the reader left them.
function morphAttributes(old, fresh) {
  const names = new Set([...old.attributes, ...fresh.attributes].map(({ name }) => name));
  if (old.matches("details")) names.delete("open");
  const changed = [...names].filter((name) => old.getAttribute(name) !== fresh.getAttribute(name));
  for (const name of changed) set(old, name, fresh.getAttribute(name));
  if (changed.some((name) => name.startsWith("hx-"))) htmx.process(old);
}

// An attribute of a field does not show where someone has changed the field, so what it shows is set, too.
function set(element, name, value) {
  if (value === null) element.removeAttribute(name);
  else element.setAttribute(name, value);
  if (!element.matches("input")) return;
  if (name === "value") element.value = value ?? "";
  if (name === "checked") element.checked = value !== null;
}

// Children whose names are gone are removed first, so that those behind them stay where they are. `next` is the
// old child at which the walk over the fresh ones stands.
export function morphChildren(old, fresh) {
  const coming = [...fresh.childNodes];
  const keys = new Set(coming.map(keyOf));
  for (const node of [...old.childNodes]) if (keyOf(node) && !keys.has(keyOf(node))) node.remove();
  const known = new Map([...old.children].map((node) => [keyOf(node), node]));
  let next = old.firstChild;
  for (const node of coming) {
    const match = keyOf(node) ? known.get(keyOf(node)) : unnamed(next, node);
    if (!match || !isSame(match, node)) {
      adopt(node, (made) => old.insertBefore(made, next));
      continue;
    }
    while (next !== match && next && !keyOf(next)) next = removed(next);
    if (next === match) next = match.nextSibling;
    else old.insertBefore(match, next);
    change(match, node);
  }
  while (next) next = removed(next);
}

// The old child without a name that becomes this one: the next, or for an element one behind it of its kind.
function unnamed(next, fresh) {
  while (next && !keyOf(next) && !isSame(next, fresh) && fresh.nodeType === Node.ELEMENT_NODE) next = next.nextSibling;
  return next;
}

function removed(node) {
  const next = node.nextSibling;
  node.remove();
  return next;
}

// HTMX meets it on the page: what asks when it is loaded asks only there.
function adopt(fresh, insert) {
  const node = document.importNode(fresh, true);
  insert(node);
  if (node.nodeType !== Node.ELEMENT_NODE) return;
  htmx.process(node);
  remember(node);
}

// The swap of pages whose steps are sent whole.
export function bindMorph() {
  remember(document);
  document.body.addEventListener("htmx:historyRestore", () => remember(document));
  htmx.defineExtension("morph", {
    isInlineSwap: (style) => style === "morph",
    handleSwap: (style, target, fragment) => {
      const fresh = style === "morph" && fragment.querySelector(`#${target.id}`);
      if (fresh) morph(target, fresh);
      return Boolean(fresh);
    },
  });
}
