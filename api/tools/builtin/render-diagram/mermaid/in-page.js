// Runs in the page: draws one Mermaid source with mermaid itself, and reports what it could not draw. The HTML in which
// mermaid sets labels becomes SVG text (`flatten.js`), which every viewer draws.
/* global flatten, inline, makeLegible, document, window, console, XMLSerializer, DOMPoint */
import mermaid from '/mermaid/mermaid.esm.min.mjs';

/** Keys that a source does not set: they are about safety, or about this program. */
const ours = ['secure', 'securityLevel', 'startOnLoad', 'maxTextSize', 'suppressErrorRendering', 'maxEdges'];
const secure = [...ours, 'deterministicIds', 'deterministicIDSeed', 'dompurifyConfig', 'logLevel', 'htmlLabels'];

/** As wide as Arial, and here on most machines. */
const fontFamily = 'Arial, Arimo, "Liberation Sans", "Noto Sans", sans-serif';

const settings = {
  startOnLoad: false,
  securityLevel: 'strict',
  suppressErrorRendering: true,
  maxTextSize: 110_000,
  maxEdges: 2_000,
  deterministicIds: true,
  deterministicIDSeed: 'moorage',
  handDrawnSeed: 1,
  htmlLabels: true,
  logLevel: 'error',
  fontFamily,
  secure,
};

/** What mermaid logs as an error and draws all the same, such as an icon that it does not have. */
const logged = [];
Object.assign(console, {
  error: (...words) => logged.push(words.map((word) => word?.message ?? String(word)).join(' ')),
});

const blocked = [];
document.addEventListener('securitypolicyviolation', ({ blockedURI, effectiveDirective }) => {
  if (/^(img|font|media|frame|connect)-src/.test(effectiveDirective)) blocked.push(blockedURI);
});

/** Ids of commits, rough lines: the same source gives the same picture. */
let seed = 20_260_101;
Math.random = () => {
  seed = (Math.imul(48_271, seed) & 0x7fffffff) >>> 0;
  return seed / 0x7fffffff;
};

/** Of the token that does not fit; a line break is counted when it is read. */
function lineOf({ line, token, text }) {
  if (line === undefined) return undefined;
  const breaks = token === 'NEWLINE' || String(text).startsWith('\n') ? 1 : 0;
  return Math.max(1, line + 1 - breaks);
}

function faultOf(error) {
  const { hash = {}, name = 'Error', message = String(error) } = error ?? {};
  const line = lineOf(hash);
  const text = line === undefined ? hash.text?.slice(0, 200) : undefined;
  return { name, message: message.slice(0, 4_000), line, text };
}

/** mermaid draws as wide as its page; set the size of the picture instead. */
function resize(svg) {
  const { width, height } = svg.viewBox.baseVal;
  svg.setAttribute('width', String(width));
  svg.setAttribute('height', String(height));
  svg.style.maxWidth = '';
  return { width, height };
}

function addViewBox(svg) {
  const box = svg.viewBox.baseVal;
  if (box !== null && box.width > 0 && box.height > 0) return;
  const own = svg.getBBox();
  svg.setAttribute('viewBox', `${own.x} ${own.y} ${own.width} ${own.height}`);
}

/** Whether anything is to be seen: marks that are not mere definitions. */
function empty(svg) {
  return [...svg.querySelectorAll('path, rect, circle, ellipse, line, polyline, polygon, text, image, foreignObject')]
    .filter((mark) => mark.closest('defs, marker, clipPath, mask, symbol') === null)
    .every((mark) => {
      const { width, height } = mark.getBBox();
      return width === 0 && height === 0;
    });
}

async function draw({ source, layout, icons }) {
  mermaid.registerIconPacks(icons.map((pack) => ({ name: pack.prefix, icons: pack })));
  mermaid.initialize({ ...settings, ...(layout === undefined ? {} : { layout }) });
  let kind;
  try {
    ({ diagramType: kind } = await mermaid.parse(source));
  } catch (error) {
    return { fault: faultOf(error) };
  }
  // mermaid measures in the page, which is as wide as a large screen: kinds that fill it keep to a readable width.
  const { svg: text } = await mermaid.render('diagram', source);
  const host = document.createElement('div');
  document.body.replaceChildren(host);
  host.innerHTML = text;
  const svg = host.querySelector('svg');
  if (svg === null || empty(svg)) return { fault: { name: 'Empty', message: 'nothing to draw' } };
  addViewBox(svg);
  const foreign = [...svg.querySelectorAll('img, image')]
    .map((image) => image.getAttribute('src') ?? image.getAttribute('href') ?? image.getAttribute('xlink:href') ?? '')
    .filter((address) => !address.startsWith('data:'));
  const icon = [...svg.querySelectorAll('i[class^="fa"]')].map((mark) => mark.className.replace(' fa-', ':fa-'));
  const formulas = svg.querySelector('math') !== null;
  flatten(svg);
  const covered = makeLegible(svg, !/\bcolor\s*:|themeVariables|themeCSS|_COLOR|UpdateElementStyle/i.test(source));
  const size = resize(svg);
  if (!formulas) inline(svg);
  return {
    kind,
    ...size,
    svg: new XMLSerializer().serializeToString(svg),
    outside: foreign,
    icons: [...icon, ...logged.flatMap((words) => /icon(?: set)? not found: (\S+)/i.exec(words)?.[1] ?? [])],
    formulas,
    covered,
    logged,
  };
}

window.drawDiagram = async (task) => {
  const drawn = await draw(task).catch((error) => ({ fault: faultOf(error) }));
  // What the policy blocked is reported a moment later.
  await new Promise((resolve) => setTimeout(resolve, 0));
  return { ...drawn, outside: [...(drawn.outside ?? []), ...blocked] };
};

/** Shows an SVG in its own size, alone. */
window.showSvg = async (text) => {
  const host = document.createElement('div');
  document.body.replaceChildren(host);
  host.innerHTML = text;
  const svg = host.querySelector('svg');
  await document.fonts.ready;
  const { width, height } = svg.getBoundingClientRect();
  return { width, height };
};

// Legibility: the picture becomes as large as its text, and text that its background swallows becomes black or white.

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
