// What a page needs from its own host: scripts, styles and images, and the calls that its scripts name.
import { Parser } from 'htmlparser2';

/** A file that the page loads. */
export interface Asset {
  /** Path and query at the page's own host. */
  readonly path: string;
  readonly kind: 'script' | 'style' | 'image';
}

const maximumAssets = 30;
const maximumCalls = 5;
/** A quoted path below /api/, as bundlers leave it. */
const call = /["'`](\/api\/[A-Za-z0-9._~/-]{1,100})["'`]/g;

/** The assets of a page that its own host serves, each once, in the order in which they stand in it. */
export function assetsOf(html: string, page: URL): Asset[] {
  const found = new Map<string, Asset>();
  let base = page;
  const add = (kind: Asset['kind'], address: string | undefined): void => {
    if (address === undefined || address === '' || found.size >= maximumAssets) return;
    const url = URL.parse(address, base.href);
    // Another host's files are that host's affair; a data: address is no request.
    if (url?.host !== page.host || url.protocol !== page.protocol) return;
    const path = `${url.pathname}${url.search}`;
    if (!found.has(path)) found.set(path, { path, kind });
  };
  const parser = new Parser({
    onopentag(name, attributes) {
      if (name === 'base') base = URL.parse(attributes['href'] ?? '', page.href) ?? base;
      const asset = assetIn(name, attributes);
      if (asset !== undefined) add(...asset);
    },
  });
  parser.end(html);
  return [...found.values()];
}

type Attributes = Readonly<Record<string, string>>;
type Reference = readonly [Asset['kind'], string | undefined] | undefined;

function assetIn(name: string, attributes: Attributes): Reference {
  return elements[name]?.(attributes);
}

/** What is loaded at once: not what waits to be scrolled to, and not what only old browsers take. */
const elements: Readonly<Record<string, (attributes: Attributes) => Reference>> = {
  script: ({ src, nomodule }) => (nomodule === undefined ? ['script', src] : undefined),
  img: ({ src, loading }) => (loading === 'lazy' ? undefined : ['image', src]),
  link({ href, rel = '' }) {
    const words = rel.toLowerCase().split(/\s+/);
    if (words.includes('alternate')) return undefined;
    if (words.includes('stylesheet')) return ['style', href];
    return words.includes('modulepreload') ? ['script', href] : undefined;
  },
};

/** Paths below /api/ that a script names, each once. Which of them it calls at once, nobody knows without running it. */
export function callsIn(script: string): string[] {
  const paths = [...script.matchAll(call)].map(([, path = '']) => path);
  return [...new Set(paths)].slice(0, maximumCalls);
}
