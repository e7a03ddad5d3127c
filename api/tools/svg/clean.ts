// Cleans SVG of what could run or reach out: it is rebuilt from known elements and attributes, so that nothing passes
// unseen.
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

/** What was taken out of an SVG, in words. */
export interface Removed {
  /** Addresses of images that would have to be loaded. */
  readonly images: Set<string>;
  /** Everything else, such as `<script>` or `link javascript:…`. */
  readonly others: Set<string>;
}

export function nothingRemoved(): Removed {
  return { images: new Set(), others: new Set() };
}

/**
 * The SVG without scripts, handlers, outside links that are not plain, images and fonts from elsewhere, document types
 * and comments. What is taken out is added to `removed`.
 */
export function cleanSvg(svg: string, removed: Removed = nothingRemoved()): string {
  return written(parser.parse(svg.replace(/<!DOCTYPE[^>[]*>/i, '')) as Node[], removed).trim();
}

function written(nodes: readonly Node[], removed: Removed): string {
  return nodes
    .map((node) => {
      const name = Object.keys(node).find((key) => key !== ':@') ?? '';
      // Entities were left as they stood, and no others than those of XML are known without a document type.
      if (name === '#text') return String(node[name]).replace(/</g, '&lt;');
      if (name === '#cdata') return encoded(textOf([node]));
      const given = (node[':@'] ?? {}) as Attributes;
      if (!elements.has(name)) {
        note(name, given, removed);
        return '';
      }
      const inner = node[name] as Node[];
      const content = name === 'style' ? encoded(cleanCss(textOf(inner), removed)) : written(inner, removed);
      const start = `<${name}${attributes(name, given, removed)}`;
      return content === '' ? `${start}/>` : `${start}>${content}</${name}>`;
    })
    .join('');
}

/** An element that is taken out; those that show nothing are not worth a word. */
function note(name: string, given: Attributes, removed: Removed): void {
  if (name === 'img') removed.images.add(given['src'] ?? '');
  else if (name !== 'metadata' && !name.includes(':')) removed.others.add(`<${name}>`);
}

function textOf(nodes: readonly Node[]): string {
  return nodes
    .map((node) => {
      if ('#text' in node) return decoded(String(node['#text']));
      return Array.isArray(node['#cdata'])
        ? (node['#cdata'] as Node[]).map((part) => String(part['#text'])).join('')
        : '';
    })
    .join('');
}

function attributes(element: string, given: Attributes, removed: Removed): string {
  return Object.entries(given)
    .map(([name, value]) => {
      const kept = attribute(element, name, value, removed);
      return kept === undefined || !/^[\w:.-]+$/.test(name)
        ? ''
        : ` ${name}="${kept.replace(/"/g, '&quot;').replace(/</g, '&lt;')}"`;
    })
    .join('');
}

function attribute(element: string, name: string, value: string, removed: Removed): string | undefined {
  if (/^(on|src|formaction|action|ping|xml:base)/i.test(name)) {
    removed.others.add(`the attribute ${name}`);
    return undefined;
  }
  const text = decoded(value);
  if (/^(xlink:)?href$/i.test(name)) return link(element, text.trim(), removed) ? value : undefined;
  if (/^xmlns/i.test(name)) return value;
  if (/url\s*\(|[\\@]/i.test(text) && /url|import|\\/i.test(text)) return encoded(cleanCss(text, removed));
  return value;
}

/** Whether a link may stay. */
function link(element: string, address: string, removed: Removed): boolean {
  if (allowedLink(element, address)) return true;
  if (element === 'image') removed.images.add(address);
  else removed.others.add(`the link ${address}`);
  return false;
}

function allowedLink(element: string, link: string): boolean {
  if (link.startsWith('#')) return true;
  if (element === 'a') return /^(https?:\/\/|mailto:)/i.test(link);
  return element === 'image' && imageUrl.test(link);
}

/** CSS without imports, and without addresses other than parts of the document and fonts inside it. */
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

export function decoded(text: string): string {
  return text.replace(
    /&(?:#x([0-9a-f]{1,6})|#(\d{1,7})|(amp|lt|gt|quot|apos));/gi,
    (_, hex: string | undefined, decimal: string | undefined, name: string | undefined) => {
      if (name !== undefined) return named[name.toLowerCase()] ?? '';
      const point = hex === undefined ? Number(decimal) : Number.parseInt(hex, 16);
      return point <= 0x10ffff ? String.fromCodePoint(point) : '';
    },
  );
}

function encoded(text: string): string {
  return text.replace(/&/g, '&amp;').replace(/</g, '&lt;').replace(/"/g, '&quot;');
}
