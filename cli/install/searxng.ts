// The image of SearXNG that the chart names: the one service behind tools that no package registry has.
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { parse } from 'yaml';
import { z } from 'zod';
import { paths } from '../../localnode/paths.ts';

const values = z.object({ tools: z.object({ searxng: z.object({ image: z.string() }) }) });

export interface NamedImage {
  /** Such as docker.io/searxng/searxng:1. */
  readonly reference: string;
  readonly repository: string;
  readonly tag: string;
}

export async function searxngImage(): Promise<NamedImage> {
  const file = join(paths.root, 'charts', 'moorage', 'values.yaml');
  const reference = values.parse(parse(await readFile(file, 'utf8'))).tools.searxng.image;
  const [, repository = '', tag = ''] = /^docker\.io\/(.+):([^:]+)$/.exec(reference) ?? [];
  return { reference, repository, tag };
}
