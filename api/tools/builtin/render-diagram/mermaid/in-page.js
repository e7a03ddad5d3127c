// Runs in the page: draws one Mermaid source with mermaid itself, and reports what it could not draw. The HTML in which
// mermaid sets labels becomes SVG text (`flatten.js`), which every viewer draws.
/* global mermaid, flatten, inline, makeLegible, document, window, console, XMLSerializer */

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

/** mermaid draws as wide as its page: the picture gets a size of its own instead. */
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
