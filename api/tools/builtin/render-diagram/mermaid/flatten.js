// Runs in the page: rewrites the browser's SVG into SVG that every viewer draws. HTML inside it (foreignObject) becomes
// SVG text, and the diagram's style sheet becomes attributes of the elements.
/* global document, window, NodeFilter, DOMPoint, CSSKeyframesRule */

// HTML becomes SVG text, line by line where the browser has put it: most viewers other than browsers draw no HTML.

const svgNames = 'http://www.w3.org/2000/svg';
const graphemes = new Intl.Segmenter(undefined, { granularity: 'grapheme' });
const canvas = document.createElement('canvas').getContext('2d');

function element(name, attributes, parent) {
  const made = document.createElementNS(svgNames, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, String(value));
  parent.append(made);
  return made;
}

/** A number as SVG wants it: hundredths of a pixel. */
const short = (value) => String(Math.round(value * 100) / 100);

function ascentOf(style) {
  canvas.font = `${style.fontStyle} ${style.fontWeight} ${style.fontSize} ${style.fontFamily}`;
  const { fontBoundingBoxAscent: ascent, fontBoundingBoxDescent: descent } = canvas.measureText('x');
  return { ascent, height: ascent + descent };
}

/** The lines of a text node, as they are set: text with its box. */
function linesOf(node) {
  const lines = [];
  const range = document.createRange();
  for (const { segment, index } of graphemes.segment(node.data)) {
    range.setStart(node, index);
    range.setEnd(node, index + segment.length);
    const box = range.getClientRects()[0];
    if (box === undefined || box.height === 0) continue;
    const last = lines.at(-1);
    if (last === undefined || Math.abs(last.top - box.top) > box.height / 2)
      lines.push({ text: segment, top: box.top, bottom: box.bottom, left: box.left, right: box.right });
    else {
      last.text += segment;
      last.left = Math.min(last.left, box.left);
      last.right = Math.max(last.right, box.right);
    }
  }
  return lines.filter(({ text }) => text.trim() !== '');
}

const seen = (colour) => colour !== 'transparent' && !/^rgba\(.*, 0\)$/.test(colour);

function transformed(text, { textTransform }) {
  if (textTransform === 'uppercase') return text.toUpperCase();
  return textTransform === 'lowercase' ? text.toLowerCase() : text;
}

/** From the screen to the coordinates of the group that takes the place of the HTML. */
function into(group) {
  const matrix = group.getScreenCTM().inverse();
  return (x, y) => new DOMPoint(x, y).matrixTransform(matrix);
}

function putText(node, group, place) {
  const style = window.getComputedStyle(node.parentElement);
  if (style.visibility === 'hidden' || style.display === 'none') return;
  const { ascent, height } = ascentOf(style);
  for (const { text, top, bottom, left, right } of linesOf(node)) {
    const from = place(left, top);
    const to = place(right, bottom);
    const zoom = (bottom - top) / Math.max(1, to.y - from.y);
    const centred = /center/.test(style.textAlign);
    const baseline = from.y + ((bottom - top) / zoom - height) / 2 + ascent;
    const line = element(
      'text',
      { x: short(centred ? (from.x + to.x) / 2 : from.x), y: short(baseline), 'xml:space': 'preserve' },
      group,
    );
    const decoration = style.textDecorationLine === 'none' ? '' : ` text-decoration: ${style.textDecorationLine};`;
    // In a style attribute, which rules of the diagram's own style sheet do not override.
    line.setAttribute(
      'style',
      `fill: ${style.color}; stroke: none; font-family: ${style.fontFamily.replaceAll('"', "'")}; font-size: ${style.fontSize}; font-weight: ${style.fontWeight}; font-style: ${style.fontStyle}; text-anchor: ${centred ? 'middle' : 'start'}; dominant-baseline: auto; opacity: ${style.opacity};${decoration}`,
    );
    line.textContent = transformed(text.trim(), style);
  }
}

/** Background and border of an HTML element. */
function putBox(html, group, place) {
  const style = window.getComputedStyle(html);
  const border = Number.parseFloat(style.borderTopWidth);
  const line = border > 0 && style.borderTopStyle !== 'none' && seen(style.borderTopColor);
  if (!seen(style.backgroundColor) && !line) return;
  for (const box of html.getClientRects()) {
    if (box.width === 0 || box.height === 0) continue;
    const from = place(box.left, box.top);
    const to = place(box.right, box.bottom);
    const size = { x: short(from.x), y: short(from.y), width: short(to.x - from.x), height: short(to.y - from.y) };
    const drawn = element('rect', size, group);
    const fill = seen(style.backgroundColor) ? style.backgroundColor : 'none';
    const stroke = line ? `${style.borderTopColor}; stroke-width: ${short(border)}` : 'none';
    drawn.setAttribute('style', `fill: ${fill}; stroke: ${stroke}; opacity: ${style.opacity}`);
  }
}

function putPicture(picture, group, place) {
  const box = picture.getBoundingClientRect();
  const from = place(box.left, box.top);
  const to = place(box.right, box.bottom);
  const size = { x: short(from.x), y: short(from.y), width: short(to.x - from.x), height: short(to.y - from.y) };
  if (picture.localName === 'img') {
    element('image', { ...size, href: picture.getAttribute('src') ?? '' }, group);
    return;
  }
  const copy = picture.cloneNode(true);
  for (const [name, value] of Object.entries(size)) copy.setAttribute(name, value);
  const { color } = window.getComputedStyle(picture);
  copy.setAttribute('style', `color: ${color}`);
  group.append(copy);
}

function putBullet(item, group, place) {
  const [first] = item.getClientRects();
  if (first === undefined) return;
  const style = window.getComputedStyle(item);
  const at = place(first.left - 10, first.top + Number.parseFloat(style.fontSize) * 0.75);
  element('circle', { cx: short(at.x), cy: short(at.y), r: 2, style: `fill: ${style.color}; stroke: none` }, group);
}

/** What turns a group cannot be measured by boxes along the axes: it is set straight while it is. */
function straighten(from) {
  const { b, c } = from.getScreenCTM();
  if (Math.abs(b) < 1e-6 && Math.abs(c) < 1e-6) return () => undefined;
  const turned = [];
  for (let node = from; node instanceof window.SVGElement; node = node.parentElement) {
    const given = node.getAttribute('transform');
    if (given === null || !/rotate|matrix|skew/.test(given)) continue;
    turned.push([node, given]);
    node.removeAttribute('transform');
  }
  return () => {
    for (const [node, given] of turned) node.setAttribute('transform', given);
  };
}

function flattenOne(foreign) {
  const restore = straighten(foreign);
  const group = document.createElementNS(svgNames, 'g');
  group.setAttribute('class', 'label-text');
  const transform = foreign.getAttribute('transform');
  if (transform !== null) group.setAttribute('transform', transform);
  // A switch shows its first child alone, and the HTML was that.
  const chosen = foreign.parentElement?.localName === 'switch' ? foreign.parentElement : foreign;
  chosen.before(group);
  const place = into(group);
  const walker = document.createTreeWalker(foreign, NodeFilter.SHOW_ELEMENT | NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node !== null; node = walker.nextNode()) put(node, foreign, group, place);
  restore();
  chosen.remove();
}

/** One node of the HTML; what is inside of a picture comes with it. */
function put(node, foreign, group, place) {
  if (node.parentElement.closest('svg') !== foreign.closest('svg')) return;
  if (node.nodeType === 3) putText(node, group, place);
  else if (node.localName === 'svg' || node.localName === 'img') putPicture(node, group, place);
  else {
    putBox(node, group, place);
    if (node.localName === 'li') putBullet(node, group, place);
  }
}

/** Formulas stay HTML, since SVG has none. */
window.flatten = (svg) => {
  for (const foreign of [...svg.querySelectorAll('foreignObject')])
    if (foreign.isConnected && foreign.querySelector('math') === null) flattenOne(foreign);
};

// The values that the style sheet gives an element are written into the element itself: viewers know much less CSS than
// browsers do. Of the sheet only animations stay.

const inherited = [
  ...['fill', 'fill-opacity', 'fill-rule', 'stroke', 'stroke-width', 'stroke-dasharray', 'stroke-dashoffset'],
  ...['stroke-linecap', 'stroke-linejoin', 'stroke-miterlimit', 'stroke-opacity', 'font-family', 'font-size'],
  ...['font-style', 'font-weight', 'text-anchor', 'dominant-baseline', 'letter-spacing', 'visibility', 'paint-order'],
  ...['marker-start', 'marker-mid', 'marker-end', 'direction'],
];
const own = [
  ...['opacity', 'display', 'filter', 'clip-path', 'mask', 'alignment-baseline', 'baseline-shift', 'stop-color'],
  ...['stop-opacity', 'flood-color', 'flood-opacity', 'text-decoration-line', 'mix-blend-mode', 'vector-effect'],
];
/** Written where CSS alone gives them. */
const geometry = ['transform', 'transform-origin', 'transform-box', 'rx', 'ry'];

const named = { 'text-decoration-line': 'text-decoration' };

/** Quotes as an attribute takes them; around addresses not all viewers read them. */
const plain = (value) => value.replace(/url\("([^"()]*)"\)/g, 'url($1)').replaceAll('"', "'");

/** A browser ignores a filter that is not there; other viewers draw nothing then. */
function dangles(element, value) {
  const id = /url\("#([^"]*)"\)/.exec(value)?.[1];
  return id !== undefined && element.getRootNode().getElementById(id) === null;
}

function stylesOf(element, parentStyle, bareStyle) {
  const style = window.getComputedStyle(element);
  const pairs = [];
  const add = (name, than) => {
    const value = style.getPropertyValue(name);
    if ((value !== than || element.hasAttribute(name)) && !dangles(element, value))
      pairs.push([named[name] ?? name, value]);
  };
  // The outermost one says all: what it would inherit elsewhere is not known.
  for (const name of inherited) add(name, parentStyle?.getPropertyValue(name));
  for (const name of own) add(name, bareStyle.getPropertyValue(name));
  pairs.push(...geometryOf(element, style, bareStyle));
  if (style.animationName !== 'none') pairs.push(['animation', style.animation]);
  return pairs.map(([name, value]) => `${name}: ${plain(value)}`).join('; ');
}

function geometryOf(element, style, bareStyle) {
  const moved = !element.hasAttribute('transform') && style.transform !== 'none';
  return geometry
    .filter((name) => !element.hasAttribute(name) && (moved || !name.startsWith('transform')))
    .map((name) => [name, style.getPropertyValue(name)])
    .filter(([name, value]) => value !== bareStyle.getPropertyValue(name));
}

function keyframes(svg) {
  const rules = [...svg.querySelectorAll('style')].flatMap((sheet) => [...(sheet.sheet?.cssRules ?? [])]);
  return rules.filter((rule) => rule instanceof CSSKeyframesRule).map((rule) => rule.cssText);
}

window.inline = (svg) => {
  const bare = document.createElementNS('http://www.w3.org/2000/svg', 'svg');
  const mark = document.createElementNS('http://www.w3.org/2000/svg', 'path');
  bare.append(mark);
  document.body.append(bare);
  const bareStyle = window.getComputedStyle(mark);
  const elements = [svg, ...svg.querySelectorAll('*:not(style, title, desc, foreignObject *)')];
  // All are read before one is written: a sheet can ask for what stands in an attribute.
  const styles = elements.map((element) =>
    stylesOf(element, element === svg ? undefined : window.getComputedStyle(element.parentElement), bareStyle),
  );
  const moving = styles.some((text) => text.includes('animation: ')) ? keyframes(svg) : [];
  for (const [index, element] of elements.entries())
    if (styles[index] === '') element.removeAttribute('style');
    else element.setAttribute('style', styles[index]);
  bare.remove();
  for (const sheet of svg.querySelectorAll('style')) sheet.remove();
  if (moving.length === 0) return;
  const sheet = document.createElementNS('http://www.w3.org/2000/svg', 'style');
  sheet.textContent = moving.join('\n');
  svg.prepend(sheet);
};
