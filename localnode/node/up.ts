// Starts the one-machine node: lists its steps and their dependencies.
import { chmod, mkdir, rm, symlink } from 'node:fs/promises';
import { getBinaryPath, buildPart, fetchModules } from '../binaries/build.ts';
import { recipes } from '../binaries/recipes.ts';
import { ensureImage, resolveImageReference, stopBuildkit } from '../images/build.ts';
import { removeRemains } from '../files.ts';
import type { ImageRecipe } from '../images/catalog.ts';
import { paths } from '../paths.ts';
import type { Step } from '../steps.ts';
import {
  installDns,
  installGatewayApi,
  installGitServer,
  installNamespaces,
  installPolicies,
  installRuntimeClass,
  installStorage,
  waitForNode,
} from './addons.ts';
import { buildContainerdSpec } from './daemons/containerd.ts';
import {
  buildControllerManagerSpec,
  prepareControlPlane,
  buildSchedulerSpec,
  type ControlPlane,
} from './control-plane/control-plane.ts';
import { writeKubeconfig } from './control-plane/certificates.ts';
import { buildKubeletSpec, buildKubeProxySpec } from './daemons/kubelet.ts';
import { findDiskObstacle, mountVolumes } from './disk/confined.ts';
import { ensureNetwork, buildNetworkPolicySpec } from './network/network.ts';
import { ensurePackages } from './daemons/packages.ts';
import { ensureProcess, type ProcessSpec } from './daemons/processes.ts';
import { nodeKubectl, buildControlPlaneOptions, node, processFolders } from './settings.ts';
import { stopCollector } from './registry/registry-cleanup.ts';
import { buildRegistrySpec } from './registry/registry.ts';

async function startOrKeep(spec: ProcessSpec): Promise<string> {
  return (await ensureProcess(processFolders, spec)) ? 'started' : 'running';
}

/** Several steps use the certificates and the API server's settings, which are created once. */
function runOnce<T>(make: () => Promise<T>): () => Promise<T> {
  let result: Promise<T> | undefined;
  return () => (result ??= make());
}

async function writePersonalKubeconfig(plane: ControlPlane): Promise<undefined> {
  const authority = plane.authority.certificate;
  await writeKubeconfig(paths.kubeconfig, {
    server: plane.server,
    authority,
    ...plane.admin,
    context: 'moorage',
    namespace: 'moorage-apps',
  });
  await chmod(paths.kubeconfig, 0o600);
  await rm(paths.kubectl, { force: true });
  await symlink(getBinaryPath('kubectl', 'kubectl'), paths.kubectl);
  return undefined;
}

async function makeFolders(): Promise<void> {
  await removeRemains(paths.state);
  // Users in pods, who are unprivileged on the node, access their mounts through these folders; everything inside has
  // its own permissions.
  for (const folder of [paths.state, paths.run, paths.volumes]) {
    await mkdir(folder, { recursive: true });
    await chmod(folder, 0o711);
  }
}

/** A machine that cannot create disks with a fixed size continues without them, and reports it. */
async function prepareDisks(): Promise<string> {
  const volumes = await mountVolumes(paths.volumes);
  const obstacle = await findDiskObstacle();
  return obstacle === undefined
    ? `sized, ${volumes} volumes mounted`
    : `volumes and disks of apps have no enforced size on this machine: ${obstacle}`;
}

/** Lists the steps that build images. */
export function listImageSteps(images: readonly ImageRecipe[]): Step[] {
  return images.map(createImageStep);
}

/** Returns the images that a step needs, with their base images. */
export function findNeededImages(steps: readonly Step[], images: readonly ImageRecipe[]): readonly ImageRecipe[] {
  const needs = new Set(steps.flatMap((step) => step.needs ?? []));
  const needed = new Set<string>();
  // From last to first, because each image comes after its base images.
  for (const { name, bases } of images.toReversed())
    if (needs.has(`image ${name}`) || needed.has(name)) for (const each of [name, ...bases]) needed.add(each);
  return images.filter(({ name }) => needed.has(name));
}

function createImageStep(image: ImageRecipe): Step {
  const parts = new Set(['buildkit', 'runc', ...image.parts]);
  return {
    name: `image ${image.name}`,
    lane: image.folder === 'debian' ? `debootstrap ${image.name}` : 'images',
    needs: [
      'packages',
      'registry',
      ...[...parts].map((part) => `compile ${part}`),
      ...image.bases.map((base) => `image ${base}`),
    ],
    run: (report) => ensureImage(image, report),
  };
}

/**
 * Lists all steps up to a cluster with DNS, storage and a git server, without those that build images.
 * `diskAnnotations`: pod annotations with the disk size.
 */
export function listNodeSteps(diskAnnotations: readonly string[]): Step[] {
  const options = buildControlPlaneOptions();
  const plane = runOnce(() => prepareControlPlane(options));
  const start = (name: string, needs: string[], spec: () => Promise<ProcessSpec>): Step => ({
    name,
    needs,
    run: async () => startOrKeep(await spec()),
  });
  const kubectl = nodeKubectl;
  return [
    {
      name: 'packages',
      run: async (report) => {
        await makeFolders();
        return await ensurePackages(report);
      },
    },
    // Downloads are limited by the network and compilation by the processor, so both run in parallel.
    ...recipes.map(({ part }): Step => ({
      name: `modules of ${part}`,
      lane: 'modules',
      needs: ['packages'],
      run: (report) => fetchModules(part, report),
    })),
    ...recipes.map(({ part }): Step => ({
      name: `compile ${part}`,
      lane: 'compiler',
      needs: [`modules of ${part}`],
      run: (report) => buildPart(part, report),
    })),
    { name: 'disks', needs: ['packages'], run: prepareDisks },
    { name: 'network', needs: ['packages'], run: ensureNetwork },
    // Two processes that stop and start the registry would interfere with each other.
    { name: 'registry collector stopped', run: stopCollector },
    start('registry', ['packages', 'network', 'registry collector stopped'], buildRegistrySpec),
    start('etcd', ['compile kubernetes'], async () => (await plane()).etcd),
    start('api server', ['etcd', 'network'], async () => (await plane()).apiServer),
    {
      name: 'kubeconfig',
      needs: ['api server', 'compile kubectl'],
      run: async () => writePersonalKubeconfig(await plane()),
    },
    start('controller manager', ['api server'], async () =>
      buildControllerManagerSpec(options, await plane(), node.podCidr),
    ),
    start('scheduler', ['api server'], async () => buildSchedulerSpec(options, await plane())),
    start('containerd', ['compile containerd', 'compile runc', 'registry', 'disks'], () =>
      buildContainerdSpec(diskAnnotations),
    ),
    { name: 'namespaces', needs: ['kubeconfig'], run: () => installNamespaces(kubectl, node.address) },
    {
      name: 'network policies',
      needs: ['namespaces'],
      run: () => installPolicies(kubectl, node.address, 'moorage-storage'),
    },
    start('network policy', ['namespaces'], async () => buildNetworkPolicySpec(await plane())),
    start('kubelet', ['containerd', 'network policy', 'image pause'], async () => buildKubeletSpec(await plane())),
    // It waits for the Node object, which the kubelet creates.
    start('kube-proxy', ['kubelet'], async () => buildKubeProxySpec(await plane())),
    {
      name: 'node ready',
      needs: ['kubelet', 'controller manager', 'scheduler', 'kube-proxy'],
      run: () => waitForNode(kubectl),
    },
    { name: 'runtime class', needs: ['kubeconfig'], run: () => installRuntimeClass(kubectl) },
    { name: 'gateway api', needs: ['namespaces'], run: () => installGatewayApi(kubectl) },
    { name: 'dns', needs: ['node ready', 'image coredns'], run: () => installDns(kubectl) },
    {
      name: 'storage',
      needs: ['node ready', 'image local-path-provisioner', 'image debian-bookworm'],
      run: async () => installStorage(kubectl, (await findDiskObstacle()) === undefined),
    },
    {
      name: 'git server',
      needs: ['storage', 'gateway api', 'image git-server'],
      run: async () => installGitServer(kubectl, await resolveImageReference('git-server')),
    },
  ];
}

export { stopBuildkit };
