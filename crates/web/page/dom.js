// The only way of this page into the document. Text is text: nothing here reads markup.

export const byId = (id) => document.getElementById(id);

// Makes an element. `properties` are set as such; `aria-…`, `data-…`, and `role` as attributes; `on…` are listeners.
export function element(tag, properties = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (name.startsWith('on')) made.addEventListener(name.slice(2), value);
    else if (name.includes('-') || name === 'role') made.setAttribute(name, value);
    else made[name] = value;
  }
  made.append(...children);
  return made;
}

// Sets the text where it differs, so that neither a selection nor a screen reader is disturbed by the same again.
export function text(node, value) {
  if (node.textContent !== value) node.textContent = value;
}

// Makes the children of `parent` those of `items`, by key: what stays is neither made again nor moved, and keeps its focus.
export function children(parent, items, key, make, update) {
  const keyOf = (item) => String(key(item));
  const wanted = new Set(items.map(keyOf));
  const present = new Map();
  for (const child of [...parent.children]) {
    if (wanted.has(child.dataset.key)) present.set(child.dataset.key, child);
    else child.remove();
  }
  let next = parent.firstElementChild;
  for (const item of items) {
    let child = present.get(keyOf(item));
    if (child === undefined) {
      child = make(item);
      child.dataset.key = keyOf(item);
    }
    update(child, item);
    if (child === next) next = next.nextElementSibling;
    else parent.insertBefore(child, next);
  }
}
