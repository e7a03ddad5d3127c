// Runs `up`, `down` and `status` on a kind cluster named moorage. `up` is a list of steps with what each needs.
import { mkdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { Arguments, Target } from '../arguments.ts';
import {
  checkWorkloads,
  installChart,
  readReleaseValues,
  waitForRelease,
  type HelmTarget,
  formatPackageSettings,
  submitSample,
  writeAddresses,
} from '../install/release.ts';
import {
  createToolPhase,
  formatToolSettings,
  toolWorkloads,
  type ToolServiceName,
  readToolStates,
} from '../install/tool-services.ts';
import { findHelm, findKind } from '../install/programs.ts';
import { runWithLock } from '../lock.ts';
import { platformNamespaces } from '../node/status.ts';
import { paths } from '../../localnode/paths.ts';
import { createLineReporter, printAddresses, printLine } from '../report.ts';
import { run } from '../../localnode/shell.ts';
import { runSteps, type Step } from '../../localnode/steps.ts';
import { runNodeKubectl, removeCluster, ensureCluster, runNodeKubectl as kubectl, shrinkDns } from './cluster.ts';
import {
  hasContainer,
  containers,
  runDocker,
  isDockerAnswering,
  listDownloadedImages,
  hasImage,
  decidePorts,
  readPublishedPorts,
  requireFreePorts,
  downloads,
  nodeImage,
  readAddress,
  seeds,
  traefikImage,
} from './docker.ts';
import {
  ownPrefix,
  createToolHost,
  buildProduct,
  publishGitServer,
  publishNodeNetwork,
  publishProduct,
  ensureRegistryImage,
} from './images.ts';
import { removeRegistry, cleanRegistry, ensureRegistry, formatPushConfig } from './registry.ts';
import {
  installDemoRouter,
  installGateway,
  installGatewayApi,
  installGitServer,
  installNamespaces,
  installPolicies,
  installPushSecret,
} from '../../localnode/node/addons.ts';
import type { GatewayPorts } from '../../localnode/node/gateway/ports.ts';
import { node } from '../../localnode/node/settings.ts';
import { proveIsolation, readEnforcerLog, installNetwork } from './isolation.ts';

/** One cluster per engine, whichever checkout asks for it. */
const lock = join(paths.cache, 'kind.lock');

async function requireDocker(): Promise<void> {
  if (!(await isDockerAnswering()))
    throw new Error(
      'no Docker engine responds (`docker info` fails), and kind needs one: start Docker and run this again',
    );
}

async function startKind(args: Arguments): Promise<void> {
  await requireDocker();
  const begun = Date.now();
  const published = await readPublishedPorts();
  const ports = decidePorts({ http: args.httpPort, https: args.httpsPort }, published);
  if (published === undefined) await requireFreePorts(ports);
  printLine('kind cluster in Docker');
  if (!(await hasImage(nodeImage)))
    printLine(`The first run downloads ${downloads}. Later ones take less than a minute.`);
  await mkdir(paths.kind, { recursive: true });
  const [kind, helm] = [await findKind(), await findHelm()];
  const release = new KindRelease(helm, ports);
  const tools = createToolPhase(createToolHost(release), args.tools);
  await runSteps(createSteps(kind, release, args.tools), createLineReporter());
  printAddresses(begun, ports);
  await runSteps(tools.steps, createLineReporter());
  printLine(`\n${await tools.summarize()}`);
}

/** Removes the images that `up` built or downloaded, except those in use elsewhere. */
async function removeImages(): Promise<string> {
  const ownImages = await runDocker([
    'images',
    '--format',
    '{{.Repository}}:{{.Tag}}',
    '--filter',
    `reference=${ownPrefix}/*`,
  ]);
  const names = [...ownImages.split('\n').filter((name) => name !== ''), ...(await listDownloadedImages())];
  let count = 0;
  for (const name of names)
    count += await runDocker(['rmi', name]).then(
      () => 1,
      () => 0,
    );
  return `removed ${count} images`;
}

async function removeFiles(purge: boolean): Promise<string> {
  for (const file of [paths.kubeconfig, paths.kubectl, paths.gitPassword, paths.authority, paths.installation])
    await rm(file, { force: true });
  await rm(paths.kind, { recursive: true, force: true });
  if (!purge) return `the cache and the images in Docker stay (remove them with --purge)`;
  // Modules in it may be read-only.
  await run('chmod', ['-R', 'u+w', paths.cache]);
  await run('rm', ['-rf', paths.cache]);
  return `removed ${paths.cache} as well`;
}

async function deleteKind(args: Arguments): Promise<void> {
  await requireDocker();
  const kind = await findKind();
  await runSteps(
    [
      { name: 'kind cluster', run: () => removeCluster(kind) },
      { name: 'registry', run: removeRegistry },
      ...(args.purge ? [{ name: 'images', needs: ['kind cluster', 'registry'], run: removeImages }] : []),
      { name: 'files', needs: ['kind cluster', 'registry'], run: () => removeFiles(args.purge) },
    ],
    createLineReporter(),
  );
}

async function describeKind(): Promise<string[]> {
  await requireDocker();
  if (!(await hasContainer(containers.node))) return ['there is no kind cluster: `npm run up` creates one'];
  try {
    printLine(await runNodeKubectl(['get', 'nodes,pods', '--all-namespaces']));
    return await checkWorkloads(runNodeKubectl, platformNamespaces);
  } catch (error) {
    return [error instanceof Error ? error.message : String(error)];
  }
}

/** The kind cluster. */
export function createKindTarget(args: Arguments): Target {
  return {
    up: () => runWithLock(lock, () => startKind(args)),
    down: () => runWithLock(lock, () => deleteKind(args)),
    status: describeKind,
  };
}

/** Images by name: as Docker knows them, and as pods pull them. */
interface Images {
  built: Map<string, string>;
  published: Map<string, string>;
}

function requireImage(images: ReadonlyMap<string, string>, name: string): string {
  const image = images.get(name);
  if (image === undefined) throw new Error(`there is no image ${name} yet`);
  return image;
}

/** Moorage's release on kind. Its images are known once they are published. */
export class KindRelease {
  readonly images: Images = { built: new Map(), published: new Map() };
  readonly ports: GatewayPorts;
  readonly #target: HelmTarget;

  constructor(helm: string, ports: GatewayPorts) {
    this.#target = { helm, kubeconfig: paths.kubeconfig };
    this.ports = ports;
  }

  /** Installs or upgrades the release, with settings of services behind tools. */
  async install(tools: readonly string[]): Promise<void> {
    const values = [join(paths.root, 'cli', 'values.local.yaml')];
    await installChart(this.#target, values, [...(await formatSettings(this.images, this.ports)), ...tools]);
  }

  /** The values that it was last installed with. */
  async readValues(): Promise<unknown> {
    return await readReleaseValues(this.#target);
  }
}

async function formatSettings(images: Images, ports: GatewayPorts): Promise<string[]> {
  const [registry, api] = await Promise.all([readAddress(containers.registry), readAddress(containers.node)]);
  return [
    `image=${requireImage(images.published, 'moorage')}`,
    `workers.image=${requireImage(images.published, 'moorage-workers')}`,
    `pipelineImage=${requireImage(images.published, 'moorage-pipeline')}`,
    `externalPort=${ports.https}`,
    `registry.cidrs={${registry}/32}`,
    `network.nodeCidrs={${api}/32}`,
    `network.apiServer.cidrs={${api}/32}`,
    ...(await formatPackageSettings()),
  ];
}

/** Addresses that no app may reach: the node's API server and kubelet, and the registry. */
async function listClosedAddresses(): Promise<string[]> {
  const [registry, api] = await Promise.all([readAddress(containers.registry), readAddress(containers.node)]);
  return [`${api}:6443`, `${api}:10250`, `${registry}:${node.registryPort}`];
}

function createImageSteps(images: Images): Step[] {
  const publish = (name: string, needs: string[], make: () => Promise<string>): Step => ({
    name: `image ${name}`,
    needs: ['registry', ...needs],
    lane: 'images',
    run: async () => {
      images.published.set(name, await make());
      return undefined;
    },
  });
  const products = ['moorage', 'moorage-workers', 'moorage-pipeline'] as const;
  return [
    ...products.map((name): Step => ({
      name: `build ${name}`,
      lane: 'builds',
      run: async (report) => {
        images.built.set(name, await buildProduct(name, report));
        return undefined;
      },
    })),
    // In the order in which the cluster needs them.
    publish('moorage', ['build moorage'], () => publishProduct('moorage', requireImage(images.built, 'moorage'))),
    publish('node-network', ['build moorage'], async () => {
      const { built, published } = await publishNodeNetwork(requireImage(images.built, 'moorage'));
      images.built.set('node-network', built);
      return published;
    }),
    publish('git-server', ['build moorage'], async () => (await publishGitServer()).published),
    publish('moorage-workers', ['build moorage-workers'], () =>
      publishProduct('moorage-workers', requireImage(images.built, 'moorage-workers')),
    ),
    publish('moorage-pipeline', ['build moorage-pipeline'], () =>
      publishProduct('moorage-pipeline', requireImage(images.built, 'moorage-pipeline')),
    ),
    ...seeds.map((image): Step => ({
      name: `image ${image}`,
      needs: ['registry'],
      lane: 'downloads',
      run: () => ensureRegistryImage(image),
    })),
  ];
}

/** All steps from a Docker engine to the sample app. */
export function createSteps(kind: string, release: KindRelease, tools: readonly ToolServiceName[]): Step[] {
  const { images, ports } = release;
  const getPublished = (name: string): string => requireImage(images.published, name);
  return [
    { name: 'kind cluster', run: () => ensureCluster(kind, ports) },
    { name: 'registry', needs: ['kind cluster'], run: ensureRegistry },
    ...createImageSteps(images),
    {
      name: 'namespaces',
      needs: ['registry'],
      run: async () => installNamespaces(kubectl, await readAddress(containers.registry)),
    },
    { name: 'gateway api', needs: ['kind cluster'], run: () => installGatewayApi(kubectl) },
    { name: 'one dns server', needs: ['kind cluster'], run: shrinkDns },
    {
      name: 'network policy',
      needs: ['namespaces', 'image node-network'],
      run: () => installNetwork(getPublished('node-network')),
    },
    {
      name: 'network policies',
      needs: ['network policy'],
      // kind brings its own provisioner.
      run: async () => installPolicies(kubectl, await readAddress(containers.node), 'local-path-storage'),
    },
    {
      name: 'isolation',
      needs: ['network policies', 'image moorage'],
      run: async () => proveIsolation(kubectl, getPublished('moorage'), await listClosedAddresses(), readEnforcerLog),
    },
    // Docker publishes the ports of the node's container; inside it the gateway uses 80 and 443.
    {
      name: 'gateway',
      needs: ['network policy', 'gateway api', 'image moorage', `image ${traefikImage}`],
      run: () =>
        installGateway(kubectl, {
          image: traefikImage,
          shipperImage: getPublished('moorage'),
          address: '0.0.0.0',
          ports: { http: 80, https: 443 },
          asksByName: false,
        }),
    },
    {
      name: 'git server',
      needs: ['network policy', 'gateway api', 'image git-server'],
      run: () => installGitServer(kubectl, getPublished('git-server')),
    },
    {
      name: 'moorage chart',
      needs: ['gateway', 'isolation', 'image moorage-workers', 'image moorage-pipeline'],
      run: async () => {
        await installPushSecret(kubectl, await formatPushConfig());
        await release.install(formatToolSettings(readToolStates(await release.readValues(), tools)));
        return undefined;
      },
    },
    {
      name: 'demo router',
      needs: ['network policy', 'image moorage'],
      run: () => installDemoRouter(kubectl, getPublished('moorage')),
    },
    {
      name: 'moorage ready',
      needs: ['moorage chart', 'git server', 'demo router', ...seeds.map((image) => `image ${image}`)],
      run: () => waitForRelease(kubectl, toolWorkloads),
    },
    {
      name: 'registry cleanup',
      needs: ['moorage ready'],
      run: () => cleanRegistry(requireImage(images.built, 'node-network')),
    },
    { name: 'addresses', run: () => writeAddresses(ports) },
    {
      name: 'sample app',
      needs: ['registry cleanup', 'addresses'],
      run: () => submitSample(ports, paths.kind),
    },
  ];
}
