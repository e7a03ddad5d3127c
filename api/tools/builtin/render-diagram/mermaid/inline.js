// Runs in the page: writes what the diagram's style sheet gives each element into the element itself, since viewers
// know much less of CSS than browsers do. Of the sheet only animations stay.
/* global document, window, CSSKeyframesRule */

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
