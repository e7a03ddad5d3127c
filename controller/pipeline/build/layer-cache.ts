// Chooses the layer cache that a build uses and refills: of all its steps, or, where that has become larger than it may
// be, of the layers of its image, which are stored anyway. Which of the two an app has is seen in the registry alone.
import { z } from 'zod';
import { cacheTags } from '../../../crds/image-names.ts';
import type { PipelineInput } from '../contract.ts';
import { registryHost } from './daemon-config.ts';

export interface LayerCache {
  /** Name with its tag, at the registry proxy. */
  readonly ref: string;
  /** As BuildKit calls the two. */
  readonly mode: 'max' | 'min';
}

const manifest = z.object({ layers: z.array(z.object({ size: z.int().min(0) })) });
const askMilliseconds = 30_000;

/** The cache of this build; undefined where the installation keeps none. */
export async function chooseCache(input: PipelineInput, token: string | undefined): Promise<LayerCache | undefined> {
  if (input.cache === undefined) return undefined;
  const isSmall = (await sizeAt(input, cacheTags.image, token)) !== undefined;
  return isSmall
    ? { ref: `${input.cache}:${cacheTags.image}`, mode: 'min' }
    : { ref: `${input.cache}:${cacheTags.all}`, mode: 'max' };
}

/** The cache to fill as well, once that of all steps has turned out larger than it may be: the next builds use it alone. */
export async function smallerCache(
  input: PipelineInput,
  used: LayerCache | undefined,
  token: string | undefined,
): Promise<LayerCache | undefined> {
  if (input.cache === undefined || input.cacheBytes === undefined || used?.mode !== 'max') return undefined;
  const size = await sizeAt(input, cacheTags.all, token);
  const isOver = size !== undefined && size > input.cacheBytes;
  return isOver ? { ref: `${input.cache}:${cacheTags.image}`, mode: 'min' } : undefined;
}

/** Bytes of the layers of a cache; undefined where there is none, or the registry does not say. */
async function sizeAt(
  { cache = '', plainHosts }: PipelineInput,
  tag: string,
  token: string | undefined,
): Promise<number | undefined> {
  const host = registryHost(cache);
  const url = `${plainHosts.includes(host) ? 'http' : 'https'}://${host}/v2/${cache.slice(host.length + 1)}/manifests/${tag}`;
  const authorization = `Basic ${Buffer.from(`moorage:${token ?? ''}`).toString('base64')}`;
  try {
    const answer = await fetch(url, {
      headers: {
        accept: 'application/vnd.oci.image.manifest.v1+json',
        ...(token === undefined ? {} : { authorization }),
      },
      signal: AbortSignal.timeout(askMilliseconds),
    });
    if (answer.ok) return manifest.parse(await answer.json()).layers.reduce((bytes, { size }) => bytes + size, 0);
    await answer.body?.cancel();
    return undefined;
  } catch {
    return undefined;
  }
}
