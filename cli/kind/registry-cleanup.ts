// Frees the disk of the registry beside a kind cluster of images that nothing in the cluster names any more.
import { limitBytes, namesIn, imageUsers } from '../../localnode/registry/storage.ts';
import { nodeKubectl } from './cluster.ts';
import { containers, docker, startContainer } from './docker.ts';
import { registryImage } from './versions.ts';

const folder = '/var/lib/registry';

async function size(): Promise<number> {
  return Number((await docker(['exec', containers.registry, 'du', '-sk', folder])).split('\t')[0]) * 1024;
}

/** Runs a program on the files of the registry. */
async function withItsFiles(args: readonly string[], input = ''): Promise<string> {
  const options = ['run', '--rm', '--interactive', '--network=none', '--volumes-from', containers.registry];
  return await docker([...options, ...args], { input });
}

/**
 * Removes images that neither a tag nor an object of the cluster names, when the registry takes more than the limit.
 * The registry is stopped meanwhile, since a push at the same time could lose its layers; builds push again. `image`
 * is the one of the node's network, as Docker knows it.
 */
export async function cleanRegistry(image: string, limit = limitBytes): Promise<string> {
  const before = await size();
  if (before < limit) return `${Math.round(before / 1024 ** 2)} MiB`;
  const used = [...namesIn(await nodeKubectl(['get', ...imageUsers]))].join('\n');
  await docker(['stop', containers.registry]);
  let removed: string;
  try {
    removed = await withItsFiles(['--user=0:0', image, 'node', '/app/localnode/registry/clean.ts', folder], used);
    await withItsFiles([registryImage, 'garbage-collect', '/etc/docker/registry/config.yml']);
  } finally {
    await startContainer(containers.registry);
  }
  return `removed ${removed} images, ${Math.round((before - (await size())) / 1024 ** 2)} MiB`;
}
