// xterm.js makes `style` elements and sets `style` attributes. The page's Content-Security-Policy refuses both, and
// with them whatever would slip in as markup; the object model it allows. So both are led there.

const createElement = document.createElement.bind(document);

// Stands where xterm.js wants a `style` element: its text becomes a style sheet of the document.
function styleElement() {
  const place = createElement('template');
  const sheet = new CSSStyleSheet();
  Object.defineProperty(place, 'textContent', { set: (rules) => sheet.replaceSync(rules) });
  place.remove = () => {
    document.adoptedStyleSheets = document.adoptedStyleSheets.filter((other) => other !== sheet);
    Element.prototype.remove.call(place);
  };
  document.adoptedStyleSheets.push(sheet);
  return place;
}

document.createElement = (name, options) => (name === 'style' ? styleElement() : createElement(name, options));

const { setAttribute } = Element.prototype;
Element.prototype.setAttribute = function (name, value) {
  if (name === 'style') this.style.cssText = value;
  else setAttribute.call(this, name, value);
};
