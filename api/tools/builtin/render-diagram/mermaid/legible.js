// Runs in the page: makes the picture as large as its text, and gives text that its background swallows black or white.
/* global window, DOMPoint */

/** WCAG AA for text. */
const enough = 4.5;
/** Of very large pictures the colours stay as they are. */
const maximumPairs = 2_000_000;

const shapeNames = 'rect, circle, ellipse, polygon, path';
const hidden = 'defs, marker, clipPath, mask, symbol, pattern';
const size = (box) => ({ x: box.x, y: box.y, right: box.x + box.width, bottom: box.y + box.height });

/** In the coordinates of the picture. */
function boxIn(svg, mark) {
  const matrix = svg.getScreenCTM().inverse().multiply(mark.getScreenCTM());
  const { x, y, right, bottom } = size(mark.getBBox());
  const corners = [
    [x, y],
    [right, y],
    [x, bottom],
    [right, bottom],
  ].map(([left, top]) => new DOMPoint(left, top).matrixTransform(matrix));
  const xs = corners.map((point) => point.x);
  const ys = corners.map((point) => point.y);
  return { x: Math.min(...xs), y: Math.min(...ys), right: Math.max(...xs), bottom: Math.max(...ys) };
}

/** Some kinds have a size that does not ask how long their labels are. */
function grow(svg) {
  const box = size(svg.viewBox.baseVal);
  const before = { ...box };
  for (const text of svg.querySelectorAll('text')) {
    if (text.textContent.trim() === '' || text.closest(hidden) !== null) continue;
    if (window.getComputedStyle(text).display === 'none') continue;
    const own = boxIn(svg, text);
    box.x = Math.min(box.x, own.x);
    box.y = Math.min(box.y, own.y);
    box.right = Math.max(box.right, own.right);
    box.bottom = Math.max(box.bottom, own.bottom);
  }
  const margin = 4;
  if (box.x < before.x - 0.5) box.x -= margin;
  if (box.y < before.y - 0.5) box.y -= margin;
  if (box.right > before.right + 0.5) box.right += margin;
  if (box.bottom > before.bottom + 0.5) box.bottom += margin;
  svg.setAttribute('viewBox', `${box.x} ${box.y} ${box.right - box.x} ${box.bottom - box.y}`);
}

const numbers = (colour) => (colour.match(/[\d.]+/g) ?? []).map(Number);

/** Red, green, blue and opacity of what is painted; undefined where that is no plain colour. */
function paintOf(style, mark) {
  const { fill } = style;
  if (!fill.startsWith('rgb')) return undefined;
  const [red = 0, green = 0, blue = 0, alpha = 1] = numbers(fill);
  let opacity = alpha * Number(style.fillOpacity);
  for (let node = mark; node instanceof window.SVGElement; node = node.parentElement)
    opacity *= Number(window.getComputedStyle(node).opacity);
  return { colour: [red, green, blue], opacity };
}

const over = (top, opacity, below) => below.map((part, index) => top[index] * opacity + part * (1 - opacity));

function luminance(colour) {
  const [red, green, blue] = colour.map((part) => {
    const share = part / 255;
    return share <= 0.040_45 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}

function contrast(one, other) {
  const [dark, light] = [luminance(one), luminance(other)].sort((a, b) => a - b);
  return (light + 0.05) / (dark + 0.05);
}

/** What stands behind a point of the screen, of what is drawn before a text; undefined where it is not known. */
function backgroundAt(point, shapes, text) {
  let colour = [255, 255, 255];
  let found = false;
  for (const { mark, box, paint } of shapes) {
    if ((mark.compareDocumentPosition(text) & 4) === 0) break;
    if (point.x < box.left || point.x > box.right || point.y < box.top || point.y > box.bottom) continue;
    if (!mark.isPointInFill(point.matrixTransform(mark.getScreenCTM().inverse()))) continue;
    if (paint === undefined) return undefined;
    colour = over(paint.colour, paint.opacity, colour);
    found = true;
  }
  return found ? colour : undefined;
}

function shapesOf(svg) {
  return [...svg.querySelectorAll(shapeNames)]
    .filter((mark) => mark.closest(hidden) === null)
    .map((mark) => ({ mark, style: window.getComputedStyle(mark) }))
    .filter(({ style }) => style.fill !== 'none' && style.display !== 'none' && style.visibility !== 'hidden')
    .map(({ mark, style }) => ({ mark, box: mark.getBoundingClientRect(), paint: paintOf(style, mark) }))
    .filter(({ paint }) => paint === undefined || paint.opacity > 0);
}

function readable(svg) {
  const shapes = shapesOf(svg);
  // Numbers of messages stand on markers, which are no shapes of their own.
  const texts = [...svg.querySelectorAll('text:not(.sequenceNumber)')].filter((text) => text.closest(hidden) === null);
  if (shapes.length * texts.length > maximumPairs) return;
  for (const text of texts) {
    const box = text.getBoundingClientRect();
    if (box.width === 0) continue;
    const background = backgroundAt(new DOMPoint(box.left + box.width / 2, box.top + box.height / 2), shapes, text);
    for (const part of [text, ...text.querySelectorAll('tspan')]) {
      const paint = paintOf(window.getComputedStyle(part), part);
      if (background === undefined || paint === undefined || paint.opacity === 0) continue;
      if (contrast(over(paint.colour, paint.opacity, background), background) >= enough) continue;
      const black = contrast([0, 0, 0], background) >= contrast([255, 255, 255], background);
      part.style.setProperty('fill', black ? '#000000' : '#ffffff', 'important');
      part.style.setProperty('fill-opacity', '1', 'important');
    }
  }
}

/** Texts that lie on others, so that neither can be read. */
function overlaps(svg) {
  const texts = [...svg.querySelectorAll('text')]
    .filter((text) => text.closest(hidden) === null && text.textContent.trim().length > 1)
    .slice(0, 600)
    .map((text) => ({ text: text.textContent.trim(), box: text.getBoundingClientRect() }));
  const found = [];
  for (const [index, one] of texts.entries())
    for (const other of texts.slice(index + 1)) {
      const width = Math.min(one.box.right, other.box.right) - Math.max(one.box.left, other.box.left);
      const height = Math.min(one.box.bottom, other.box.bottom) - Math.max(one.box.top, other.box.top);
      const smaller = Math.min(one.box.width * one.box.height, other.box.width * other.box.height);
      if (width > 0 && height > 0 && width * height > smaller / 2) found.push([one.text, other.text]);
    }
  return found.slice(0, 5);
}

/** `colours`: whether the source leaves them to us. @returns texts that lie on others */
window.makeLegible = (svg, colours) => {
  grow(svg);
  if (colours) readable(svg);
  return overlaps(svg);
};
