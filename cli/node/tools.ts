// How the one-machine node has the images of services behind tools.
import { join } from 'node:path';
import { ensureImage, imageBytes, imageOf, imageReference } from '../../localnode/images/build.ts';
import { searxngImage } from '../install/searxng.ts';
import type { NodeRelease } from '../install/node-release.ts';
import type { ToolHost, ToolImage } from '../install/tool-steps.ts';
import { registryBytes } from '../../localnode/registry/manifests.ts';
import { run } from '../../localnode/shell.ts';
import { nodeKubectl } from '../../localnode/node/kubectl.ts';
import { askRegistry, digestAt, dockerConfigFolder, registryAddress } from '../../localnode/node/registry/registry.ts';

/** Copies it from Docker Hub into the node's registry, once. Throws where Docker Hub is out of reach. */
async function copySearxng(): Promise<ToolImage> {
  const { reference, repository, tag } = await searxngImage();
  if ((await digestAt(repository, tag)) === undefined)
    await run('skopeo', [
      ...['--command-timeout', '300s', 'copy', '--quiet', '--insecure-policy', '--dest-tls-verify=false'],
      ...['--authfile', join(await dockerConfigFolder(), 'config.json')],
      ...[`docker://${reference}`, `docker://${registryAddress}/${repository}:${tag}`],
    ]);
  const read = async (each: string): Promise<string> => (await askRegistry(`/v2/${repository}/manifests/${each}`)).body;
  return { reference, bytes: await registryBytes(tag, read) };
}

export function nodeToolHost(release: NodeRelease): ToolHost {
  return {
    kubectl: nodeKubectl,
    values: () => release.values(),
    build: async (name, report) => {
      await ensureImage(imageOf(name), report);
      return { reference: await imageReference(name), bytes: await imageBytes(name) };
    },
    searxng: copySearxng,
    install: (settings) => release.install(settings),
  };
}
