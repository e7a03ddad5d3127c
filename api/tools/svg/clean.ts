// Removes from SVG everything that could run or load something: rebuilds it from known elements and attributes, so that
// nothing unknown passes.
import { XMLParser } from 'fast-xml-parser';

const drawing =
  'svg g defs symbol use path rect circle ellipse line polyline polygon text tspan textPath title desc style marker linearGradient radialGradient stop pattern clipPath mask filter a image switch ' +
  'feBlend feColorMatrix feComponentTransfer feComposite feConvolveMatrix feDiffuseLighting feDisplacementMap feDistantLight feDropShadow feFlood feFuncA feFuncB feFuncG feFuncR feGaussianBlur feMerge feMergeNode feMorphology feOffset fePointLight feSpecularLighting feSpotLight feTile feTurbulence';
const writing =
  'foreignObject div span p br hr b i u s em strong small code pre kbd sub sup h1 h2 h3 h4 h5 h6 ul ol li dl dt dd blockquote table thead tbody tr th td del';
const elements = new Set(`${drawing} ${writing}`.split(' '));
const fontUrl = /^data:(font|application)\/[a-z0-9.+-]*(font|woff|ttf|otf|opentype|octet-stream)[a-z0-9.+-]*;base64,/i;
const imageUrl = /^data:image\/(png|jpeg|gif|webp);base64,/i;

type Attributes = Record<string, string>;
type Node = Record<string, unknown>;

const parser = new XMLParser({
  preserveOrder: true,
  ignoreAttributes: false,
  attributeNamePrefix: '',
  processEntities: false,
  cdataPropName: '#cdata',
  trimValues: false,
  parseTagValue: false,
  parseAttributeValue: false,
  ignoreDeclaration: true,
  ignorePiTags: true,
  maxNestedTags: 1_000,
});

/** What was removed from an SVG, as text. */
export interface Removed {
  /** URLs of external images. */
  readonly images: Set<string>;
  /** Everything else, such as `<script>` or `link javascript:…`. */
  readonly others: Set<string>;
}

export function createRemoved(): Removed {
  return { images: new Set(), others: new Set() };
}

/**
 * Removes scripts, event handlers, links other than http, https and mailto, external images and fonts, document types and
 * comments. Adds what it removed to `removed`.
 */
export function cleanSvg(svg: string, removed: Removed = createRemoved()): string {
  return formatNodes(parser.parse(svg.replace(/<!DOCTYPE[^>[]*>/i, '')) as Node[], removed).trim();
}

function formatNodes(nodes: readonly Node[], removed: Removed): string {
  return nodes
    .map((node) => {
      const name = Object.keys(node).find((key) => key !== ':@') ?? '';
      // The parser leaves entities unchanged, and without a document type only those of XML are defined.
      if (name === '#text') return String(node[name]).replace(/</g, '&lt;');
      if (name === '#cdata') return encodeEntities(readText([node]));
      const given = (node[':@'] ?? {}) as Attributes;
      if (!elements.has(name)) {
        recordRemoval(name, given, removed);
        return '';
      }
      const inner = node[name] as Node[];
      const content =
        name === 'style' ? encodeEntities(cleanCss(readText(inner), removed)) : formatNodes(inner, removed);
      const start = `<${name}${formatAttributes(name, given, removed)}`;
      return content === '' ? `${start}/>` : `${start}>${content}</${name}>`;
    })
    .join('');
}

/** Records a removed element, unless it is invisible. */
function recordRemoval(name: string, given: Attributes, removed: Removed): void {
  if (name === 'img') removed.images.add(given['src'] ?? '');
  else if (name !== 'metadata' && !name.includes(':')) removed.others.add(`<${name}>`);
}

function readText(nodes: readonly Node[]): string {
  return nodes
    .map((node) => {
      if ('#text' in node) return decodeEntities(String(node['#text']));
      return Array.isArray(node['#cdata'])
        ? (node['#cdata'] as Node[]).map((part) => String(part['#text'])).join('')
        : '';
    })
    .join('');
}

function formatAttributes(element: string, given: Attributes, removed: Removed): string {
  return Object.entries(given)
    .map(([name, value]) => {
      const kept = cleanAttribute(element, name, value, removed);
      return kept === undefined || !/^[\w:.-]+$/.test(name)
        ? ''
        : ` ${name}="${kept.replace(/"/g, '&quot;').replace(/</g, '&lt;')}"`;
    })
    .join('');
}

function cleanAttribute(element: string, name: string, value: string, removed: Removed): string | undefined {
  if (/^(on|src|formaction|action|ping|xml:base)/i.test(name)) {
    removed.others.add(`the attribute ${name}`);
    return undefined;
  }
  const text = decodeEntities(value);
  if (/^(xlink:)?href$/i.test(name)) return checkLink(element, text.trim(), removed) ? value : undefined;
  if (/^xmlns/i.test(name)) return value;
  if (/url\s*\(|[\\@]/i.test(text) && /url|import|\\/i.test(text)) return encodeEntities(cleanCss(text, removed));
  return value;
}

/** Returns whether a link may stay, and records it otherwise. */
function checkLink(element: string, address: string, removed: Removed): boolean {
  if (isAllowedLink(element, address)) return true;
  if (element === 'image') removed.images.add(address);
  else removed.others.add(`the link ${address}`);
  return false;
}

function isAllowedLink(element: string, link: string): boolean {
  if (link.startsWith('#')) return true;
  if (element === 'a') return /^(https?:\/\/|mailto:)/i.test(link);
  return element === 'image' && imageUrl.test(link);
}

/** Removes imports and URLs from CSS, except references within the document and embedded fonts. */
function cleanCss(css: string, removed: Removed): string {
  return css
    .replace(/\\/g, '')
    .replace(/@import[^;]*;?/gi, (rule) => {
      removed.others.add(rule);
      return '';
    })
    .replace(/(-moz-binding|behavior)\s*:/gi, 'x:')
    .replace(/image-set\s*\(/gi, 'x(')
    .replace(/url\s*\(\s*(["']?)([^"')]*)\1\s*\)?/gi, (whole, _, address: string) => {
      if (address.startsWith('#') || fontUrl.test(address)) return whole;
      removed.others.add(`url(${address})`);
      return 'none';
    });
}

const named: Readonly<Record<string, string>> = { amp: '&', lt: '<', gt: '>', quot: '"', apos: "'" };

export function decodeEntities(text: string): string {
  return text.replace(
    /&(?:#x([0-9a-f]{1,6})|#(\d{1,7})|(amp|lt|gt|quot|apos));/gi,
    (_, hex: string | undefined, decimal: string | undefined, name: string | undefined) => {
      if (name !== undefined) return named[name.toLowerCase()] ?? '';
      const point = hex === undefined ? Number(decimal) : Number.parseInt(hex, 16);
      return point <= 0x10ffff ? String.fromCodePoint(point) : '';
    },
  );
}

function encodeEntities(text: string): string {
  return text.replace(/&/g, '&amp;').replace(/</g, '&lt;').replace(/"/g, '&quot;');
}
