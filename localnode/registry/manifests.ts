// Manifests of images in a registry: how they are asked for, and what an image takes.
import { z } from 'zod';

/** To be accepted: the registry has nothing under a name whose format is not, and engines push one or the other. */
export const manifestFormats = [
  'application/vnd.oci.image.index.v1+json',
  'application/vnd.oci.image.manifest.v1+json',
  'application/vnd.docker.distribution.manifest.list.v2+json',
  'application/vnd.docker.distribution.manifest.v2+json',
].join(', ');

const listed = z.object({
  digest: z.string(),
  platform: z.object({ os: z.string() }).optional(),
});
const manifest = z.union([
  z.object({ layers: z.array(z.object({ size: z.int() })) }),
  // Some engines push an image as the one entry of a list, with attestations beside it.
  z.object({ manifests: z.array(listed).min(1) }),
]);

/** What an image takes in the registry, compressed. `read` gives the manifest that a tag or a digest names. */
export async function registryBytes(reference: string, read: (reference: string) => Promise<string>): Promise<number> {
  const found = manifest.parse(JSON.parse(await read(reference)));
  if ('layers' in found) return found.layers.reduce((all, { size }) => all + size, 0);
  const [first] = found.manifests;
  const image = found.manifests.find(({ platform }) => platform?.os === 'linux') ?? first;
  return await registryBytes(image?.digest ?? '', read);
}
