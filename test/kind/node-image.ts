// The image of a kind node from packages: what Docker Hub's `kindest/node` holds, made here.
import { cp, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { z } from 'zod';
import { getBinaryPath, buildPart } from '../../localnode/binaries/build.ts';
import { getRecipe, type Part } from '../../localnode/binaries/recipes.ts';
import { findGo } from '../../localnode/binaries/toolchain.ts';
import { computeContentKey, computeFolderKey } from '../../localnode/files.ts';
import { computeImageKey, getImage } from '../../localnode/images/build.ts';
import { kindVersion } from '../../cli/kind/docker.ts';
import { fillIn } from '../../localnode/kubectl.ts';
import { paths } from '../../localnode/paths.ts';
import { run } from '../../localnode/shell.ts';
import { runIn, type Engine } from './engine.ts';
import { hasImage } from './hub-images.ts';

const folder = join(import.meta.dirname, 'image');
const controlPlane = ['kube-apiserver', 'kube-controller-manager', 'kube-scheduler', 'kube-proxy', 'etcd'] as const;
const binaries: readonly (readonly [Part, readonly string[]])[] = [
  ['kubernetes', [...controlPlane, 'kubelet']],
  ['kubectl', ['kubectl']],
  ['kubeadm', ['kubeadm']],
  ['containerd', ['containerd', 'containerd-shim-runc-v2', 'ctr']],
  ['runc', ['runc']],
];
const version = getRecipe('kubernetes').version;
const download = z.object({ Dir: z.string() });

/** kind's module holds the files of its node image. */
async function kindFiles(): Promise<string> {
  const text = await run(await findGo(), ['mod', 'download', '-json', `sigs.k8s.io/kind@${kindVersion}`], { cwd: '/' });
  return join(download.parse(JSON.parse(text)).Dir, 'images', 'base', 'files');
}

/** The images that kubeadm asks for, by the last part of their name: `pause`, `coredns`, `etcd`, ... */
async function controlPlaneImages(): Promise<Map<string, string>> {
  const args = ['config', 'images', 'list', `--kubernetes-version=${version}`];
  const names = (await run(getBinaryPath('kubeadm', 'kubeadm'), args)).split('\n');
  return new Map(names.map((name) => [/([^/:]+):[^:]*$/.exec(name)?.[1] ?? name, name]));
}

async function storageManifest(): Promise<string> {
  const manifest = (name: string): Promise<string> =>
    readFile(join(paths.root, 'localnode', 'manifests', `${name}.yaml`), 'utf8');
  const recipe = getImage('local-path-provisioner');
  const image = `docker.io/${recipe.repository}:${recipe.tags[0] ?? ''}`;
  const values = {
    'IMAGE:local-path-provisioner': image,
    VOLUMES: '/var/local-path-provisioner',
    SIZED: 'no',
    CONFIG: '',
  };
  return [await manifest('namespaces'), fillIn(await manifest('storage'), values)].join('\n---\n');
}

async function fillContext(context: string): Promise<void> {
  await cp(folder, context, { recursive: true });
  await cp(await kindFiles(), join(context, 'files'), { recursive: true });
  // Files of a Go module are read-only.
  await run('chmod', ['-R', 'u+w', join(context, 'files')]);
  await mkdir(join(context, 'bin'));
  for (const [part, names] of binaries)
    for (const name of names) await cp(getBinaryPath(part, name), join(context, 'bin', name));
  await writeFile(join(context, 'version'), version);
  await writeFile(join(context, 'storage.yaml'), await storageManifest());
}

/** Puts images into the containerd of a container made from the base, and commits it as the node image. */
async function preload(engine: Engine, base: string, images: readonly string[], name: string): Promise<void> {
  const container = 'moorage-kind-preload';
  const docker = (...args: string[]): Promise<string> => runIn(engine, ['docker', ...args]);
  await docker('rm', '--force', '--volumes', container).catch(() => '');
  await docker('run', '--detach', '--privileged', '--name', container, '--entrypoint', 'sleep', base, 'infinity');
  try {
    await docker('exec', '--detach', container, 'containerd');
    await sleep(3000);
    const load = ['ctr', '-n', 'k8s.io', 'images', 'import', '--all-platforms', '--no-unpack', '--digests', '-'];
    const script = `docker save ${images.join(' ')} | docker exec -i ${container} ${load.join(' ')}`;
    await runIn(engine, ['sh', '-c', script]);
    await docker('exec', container, 'sh', '-c', 'kill $(pidof containerd); sleep 1; rm -rf /run/containerd /tmp/*');
    await docker('commit', '--change', 'ENTRYPOINT ["/usr/local/bin/entrypoint", "/sbin/init"]', container, name);
  } finally {
    await docker('rm', '--force', '--volumes', container);
  }
}

async function build(engine: Engine, name: string, registry: string): Promise<void> {
  const names = await controlPlaneImages();
  const context = await mkdtemp(join(tmpdir(), 'moorage-kind-node-'));
  const docker = (...args: string[]): Promise<string> => runIn(engine, ['docker', ...args]);
  const target = (tag: string, stage: string, ...args: string[]): Promise<string> =>
    docker('build', '--quiet', '--tag', tag, '--target', stage, ...args, context);
  try {
    await fillContext(context);
    for (const stage of controlPlane) await target(names.get(stage) ?? stage, stage);
    for (const [image, recipe] of [
      ['pause', getImage('pause')],
      ['coredns', getImage('coredns')],
    ] as const)
      await docker('tag', `${recipe.repository}:${recipe.tags[0] ?? ''}`, names.get(image) ?? image);
    await target(registry, 'registry');
    await target(`${name}-base`, 'node', '--build-arg', `PAUSE=${names.get('pause') ?? ''}`);
    const storage = getImage('local-path-provisioner');
    const others = [`${storage.repository}:${storage.tags[0] ?? ''}`, 'debian:bookworm-slim'];
    await preload(engine, `${name}-base`, [...names.values(), ...others], name);
  } finally {
    await rm(context, { recursive: true, force: true });
  }
}

/** The images of node and registry, made unless the engine has them. */
export async function ensureNodeImage(engine: Engine): Promise<{ node: string; registry: string }> {
  for (const [part] of binaries) await buildPart(part);
  const bases = await Promise.all(
    ['pause', 'coredns', 'local-path-provisioner'].map((name) => computeImageKey(getImage(name))),
  );
  const own = await computeFolderKey(folder);
  const key = computeContentKey([kindVersion, version, own, await storageManifest(), ...bases]);
  const [node, registry] = [`moorage-hub/kind-node:${key}`, `moorage-hub/registry:${key}`];
  if (!(await hasImage(engine, node))) await build(engine, node, registry);
  return { node, registry };
}
