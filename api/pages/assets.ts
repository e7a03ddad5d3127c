// The stylesheet and scripts of pages: read once, and served at addresses that change with their content.
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import { Problem } from '../../lib/problem.ts';
import { createBufferedResponse, defineEndpoint, type Endpoint, notFound } from '../http/index.ts';

const types = { css: 'text/css; charset=utf-8', js: 'text/javascript; charset=utf-8', svg: 'image/svg+xml' } as const;

interface Asset {
  readonly bytes: Uint8Array<ArrayBuffer>;
  readonly hash: string;
  readonly contentType: string;
}

/** Reads one file, or several as one. */
function readAsset(extension: keyof typeof types, ...names: readonly string[]): Asset {
  const texts = names.map((name) => readFileSync(join(import.meta.dirname, 'assets', `${name}.${extension}`), 'utf8'));
  const bytes = new TextEncoder().encode(texts.join('\n'));
  const hash = createHash('sha256').update(bytes).digest('hex').slice(0, 16);
  return { bytes, hash, contentType: types[extension] };
}

/** In cascade order: of two rules with the same specificity, the later one wins. */
const styles = [
  'base',
  'frame',
  'text',
  'forms',
  'notices',
  'lists',
  'tables',
  'stages',
  'answers',
  'plots',
  'screens',
];

const assets = {
  'style.css': readAsset('css', ...styles.map((name) => `style/${name}`)),
  'icon.svg': readAsset('svg', 'icon'),
  'status.js': readAsset('js', 'status'),
  'compare.js': readAsset('js', 'compare'),
} satisfies Record<string, Asset>;
export type AssetName = keyof typeof assets;

/** The path at which it is served: `/assets/style.0123456789abcdef.css`. */
export function toAssetPath(name: AssetName): string {
  return `/assets/${name.replace('.', `.${assets[name].hash}.`)}`;
}

const assetName = /^([a-z]{1,20})\.([0-9a-f]{16})\.(css|js|svg)$/;

export const assetEndpoint: Endpoint = defineEndpoint({
  method: 'GET',
  head: 'as GET',
  path: '/assets/{file}',
  operation: 'getAsset',
  tag: 'pages',
  summary: 'A stylesheet or script of the pages',
  description: 'The address contains the hash of the content.',
  params: z.strictObject({ file: z.string().max(60).describe('Name, hash and extension.') }),
  output: z.string(),
  outputDescription: 'The file.',
  produces: ['*/*'],
  problems: [notFound],
  handler({ params }) {
    const [, name, hash, extension] = assetName.exec(params.file) ?? [];
    const asset: Asset | undefined = Object.hasOwn(assets, `${name}.${extension}`)
      ? assets[`${name}.${extension}` as AssetName]
      : undefined;
    if (asset === undefined) throw new Problem(notFound, 'There is no such file.');
    // During a rollout, a page of one replica may load its files from another. It gets that version and does not cache it.
    const cache = hash === asset.hash ? 'public, max-age=31536000, immutable' : 'no-store';
    const headers = {
      'content-type': asset.contentType,
      'cache-control': cache,
      'cross-origin-resource-policy': 'same-origin',
    };
    return Promise.resolve(createBufferedResponse(asset.bytes, { headers }));
  },
});
