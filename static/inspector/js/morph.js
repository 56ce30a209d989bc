// Makes elements equal to fresh ones, and changes only what differs: focus, ticks, the pointer and the
// place of a list stay with what is still there.
const ASKS = ["hx-get", "hx-post"];

// HTMX meets it on the page: what asks when it is loaded asks only there.
function adopt(fresh, insert) {
  const node = document.importNode(fresh, true);
  insert(node);
  if (node.nodeType === Node.ELEMENT_NODE) htmx.process(node);
  return node;
}

export function morph(old, fresh) {
  if (old.isEqualNode(fresh)) return;
  if (old.nodeName !== fresh.nodeName || isAnotherLink(old, fresh)) return adopt(fresh, (node) => old.replaceWith(node));
  if (old.nodeType !== Node.ELEMENT_NODE) {
    old.nodeValue = fresh.nodeValue;
    return;
  }
  for (const { name } of [...old.attributes]) if (!fresh.hasAttribute(name)) old.removeAttribute(name);
  for (const { name, value } of fresh.attributes) if (old.getAttribute(name) !== value) set(old, name, value);
  const freshNodes = [...fresh.childNodes];
  while (old.childNodes.length > freshNodes.length) old.lastChild.remove();
  freshNodes.forEach((node, i) => (i < old.childNodes.length ? morph(old.childNodes[i], node) : adopt(node, (each) => old.append(each))));
}

// A field that someone has changed shows another value only if it is told to.
function set(element, name, value) {
  element.setAttribute(name, value);
  if (name === "value" && element.matches("input")) element.value = value;
}

// HTMX read the address of a link or a form when it first met it.
function isAnotherLink(old, fresh) {
  return old.nodeType === Node.ELEMENT_NODE && ASKS.some((name) => old.getAttribute(name) !== fresh.getAttribute(name));
}

// Items are told apart by data-id. With `keeps`, the old ones stay where they are and no others come.
export function morphList(list, freshList, keeps = false) {
  const known = new Map([...list.children].map((item) => [item.dataset.id, item]));
  const items = [...freshList.children].map((fresh) => {
    const old = known.get(fresh.dataset.id);
    if (!old) return keeps ? null : adopt(fresh, (node) => list.append(node));
    morph(old, fresh);
    return old;
  });
  if (keeps) return;
  [...list.children].filter((item) => !items.includes(item)).forEach((item) => item.remove());
  items.forEach((item, i) => {
    if (list.children[i] !== item) list.insertBefore(item, list.children[i] ?? null);
  });
}
