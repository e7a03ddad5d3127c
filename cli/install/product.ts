// Installs Moorage on the one-machine node: selects and builds its images, installs the chart, and submits the sample app.
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { baseImages } from '../../crds/languages.ts';
import { computeContentKey, computeFolderKey, readText } from '../../localnode/files.ts';
import {
  ensureArchive,
  computeImageKey,
  getImage,
  resolveImageReference,
  pushArchive,
  resolveTaggedReference,
} from '../../localnode/images/build.ts';
import type { Kubectl } from '../../localnode/kubectl.ts';
import {
  installDemoRouter,
  installDomainRights,
  installGateway,
  installPushSecret,
} from '../../localnode/node/addons.ts';
import type { GatewayPorts } from '../../localnode/node/gateway/ports.ts';
import { buildDockerConfig, findDigest } from '../../localnode/node/registry/registry.ts';
import { ensureProcess } from '../../localnode/node/daemons/processes.ts';
import { buildCollectorSpec, cleanRegistry } from '../../localnode/node/registry/registry-cleanup.ts';
import { node, processFolders, computeAppsQuota } from '../../localnode/node/settings.ts';
import { paths } from '../../localnode/paths.ts';
import { limitBytes } from '../../localnode/registry/storage.ts';
import type { Report, Step } from '../../localnode/steps.ts';
import {
  waitForRelease,
  submitSample,
  writeAddresses,
  installChart,
  readReleaseValues,
  formatPackageSettings,
} from './release.ts';
import {
  formatToolSettings,
  toolWorkloads,
  readShares,
  type ToolServiceName,
  readToolStates,
} from './tool-services.ts';
import { getBinaryPath } from '../../localnode/binaries/build.ts';
import { getRecipe } from '../../localnode/binaries/recipes.ts';
import { serviceImages, servicesOnDemand, type ImageRecipe, images } from '../../localnode/images/catalog.ts';
import { confinedClass } from '../../localnode/node/disk/confined.ts';
import { UsageError } from '../../lib/command-line.ts';

/** What the root Dockerfile copies into every image, what it copies into one of them, and the base images. */
const sources = {
  folders: ['lib', 'crds', 'controller', 'activator', 'api'],
  files: ['Dockerfile', '.dockerignore', '.npmrc', 'package.json', 'package-lock.json', 'LICENSE', 'bundle.ts'],
};
const manifests: Record<ProductTarget, readonly string[]> = {
  moorage: ['manifests'],
  'moorage-workers': [],
  'moorage-pipeline': [],
};
const bases: Record<ProductTarget, readonly string[]> = {
  moorage: ['node-24'],
  'moorage-workers': ['node-24'],
  'moorage-pipeline': ['node-24', 'python-3.11', 'buildkit', 'gitleaks', 'mcp-bridge'],
};
/** The node compiles the bridge itself, because its image of Go is made on demand. */
const imageArguments: Partial<Record<ProductTarget, Readonly<Record<string, string>>>> = {
  'moorage-pipeline': { BRIDGE: `moorage/mcp-bridge:${getRecipe('mcp-bridge').version}` },
};

async function computeProductKey(target: ProductTarget): Promise<string> {
  const folders = await Promise.all(sources.folders.map((folder) => computeFolderKey(join(paths.root, folder))));
  const manifestKeys = await Promise.all(
    manifests[target].map((folder) => computeFolderKey(join(paths.root, folder), ['samples'])),
  );
  const files = await Promise.all(sources.files.map(async (file) => (await readText(join(paths.root, file))) ?? ''));
  const keys = await Promise.all(bases[target].map((name) => computeImageKey(getImage(name))));
  return computeContentKey([target, ...folders, ...manifestKeys, ...files, ...keys]);
}

/** Builds and pushes one target of the root Dockerfile. Returns the image by digest. */
async function ensureProductImage(
  target: ProductTarget,
  report: Report,
): Promise<{ reference: string; detail: string }> {
  const key = await computeProductKey(target);
  const { archive, cached } = await ensureArchive(
    { name: target, key, context: paths.root, target, arguments: { ...imageArguments[target] } },
    undefined,
    report,
  );
  const { digest } = await pushArchive(archive, `moorage/${target}`, [key]);
  return { reference: `${node.registryHost}/moorage/${target}@${digest}`, detail: cached ? 'unchanged' : 'built' };
}

/** Lets the model router itself limit what the platform key may spend, if it can. Returns the result. */
async function ensureKeyLimit(kubectl: Kubectl): Promise<string> {
  const program = 'node api/models/router/limit-command.ts --ensure || true';
  const command = ['-n', 'moorage-system', 'exec', 'deploy/moorage-api', '-c', 'api', '--', 'sh', '-c', program];
  return (await kubectl(command)).trim();
}

/** The steps from an empty cluster to Moorage running on it. */
export function createProductSteps(kubectl: Kubectl, ports: () => GatewayPorts, release: NodeRelease): Step[] {
  const { references } = release;
  const createImageStep = (target: ProductTarget): Step => ({
    name: `image ${target}`,
    lane: 'images',
    needs: [...bases[target].map((base) => `image ${base}`)],
    run: async (report) => {
      const { reference, detail } = await ensureProductImage(target, report);
      references.set(target, reference);
      return detail;
    },
  });
  return [
    ...productTargets.map(createImageStep),
    {
      name: 'gateway',
      needs: ['dns', 'gateway api', 'network policy', 'image traefik', 'image moorage'],
      run: async () =>
        installGateway(kubectl, {
          image: await resolveImageReference('traefik'),
          shipperImage: references.get('moorage') ?? '',
          address: '127.0.0.1',
          ports: ports(),
          asksByName: true,
        }),
    },
    {
      name: 'moorage chart',
      needs: [
        ...productTargets.map((target) => `image ${target}`),
        ...release.listServiceImages().map((name) => `image ${name}`),
        'compile helm',
        'gateway api',
        'network policy',
        'runtime class',
      ],
      run: async () => {
        await installPushSecret(kubectl, await buildDockerConfig());
        await release.install(formatToolSettings(readToolStates(await release.readValues(), release.tools)));
        return (await readFile(join(paths.root, 'charts', 'moorage', 'Chart.yaml'), 'utf8')).match(
          /^version:.*$/m,
        )?.[0];
      },
    },
    { name: 'own domains', needs: ['moorage chart', 'gateway'], run: () => installDomainRights(kubectl) },
    {
      name: 'demo router',
      needs: ['image moorage', 'dns', 'network policy'],
      run: () => installDemoRouter(kubectl, references.get('moorage') ?? ''),
    },
    {
      name: 'moorage ready',
      needs: ['moorage chart', 'git server', 'demo router', 'storage', 'image postgres'],
      run: () => waitForRelease(kubectl, toolWorkloads),
    },
    {
      name: 'limit of the platform key',
      needs: ['moorage ready'],
      run: () => ensureKeyLimit(kubectl),
    },
    {
      name: 'registry cleanup',
      needs: ['moorage ready'],
      run: async () => {
        const { text } = await cleanRegistry(kubectl, limitBytes);
        await ensureProcess(processFolders, await buildCollectorSpec());
        return text;
      },
    },
    { name: 'addresses', needs: ['packages'], run: () => writeAddresses(ports()) },
    {
      name: 'sample app',
      needs: ['registry cleanup', 'addresses', 'gateway', 'image node-24'],
      run: (report) => submitSample(ports(), paths.state, report),
    },
  ];
}

export const productTargets = ['moorage', 'moorage-workers', 'moorage-pipeline'] as const;
export type ProductTarget = (typeof productTargets)[number];

export interface NodeReleaseOptions {
  readonly getPorts: () => GatewayPorts;
  /** Images that this run builds. */
  readonly images: readonly ImageRecipe[];
  /** Requested services behind tools, for which apps leave room. */
  readonly tools: readonly ToolServiceName[];
}

/**
 * Moorage's release on the one-machine node. It is installed first without the services behind tools whose images are
 * still to be built, and then with them.
 */
export class NodeRelease {
  /** The product's images as pods pull them, once they are pushed. */
  readonly references = new Map<ProductTarget, string>();
  readonly tools: readonly ToolServiceName[];
  readonly #options: NodeReleaseOptions;

  constructor(options: NodeReleaseOptions) {
    this.#options = options;
    this.tools = options.tools;
  }

  /** Installs or upgrades the release, with settings of services behind tools. */
  async install(tools: readonly string[]): Promise<void> {
    const { getPorts, images } = this.#options;
    const settings = [
      `image=${this.references.get('moorage') ?? ''}`,
      `workers.image=${this.references.get('moorage-workers') ?? ''}`,
      `pipelineImage=${this.references.get('moorage-pipeline') ?? ''}`,
      `externalPort=${getPorts().https}`,
      `apps.runtimeClassName=${confinedClass}`,
      `domains.issuer=${node.domainsIssuer}`,
      `registry.missingImages={${(await findMissingImages(images)).join(',')}}`,
      `registry.imagesOnDemand={${imagesOnDemand.flatMap(listNames).join(',')}}`,
      ...(await formatBuiltServices()),
      ...(await formatOfferedServices(images)),
      ...computeAppsQuota((await readShares(this.tools)).requests),
      ...(await formatPackageSettings()),
      ...tools,
    ];
    await installChart(this.#getTarget(), [join(paths.root, 'cli', 'values.local.yaml')], settings);
  }

  /** Images of services that this run builds. They must exist first, since the chart names them by digest. */
  listServiceImages(): string[] {
    const coming = new Set(this.#options.images);
    return [...serviceImages, ...servicesOnDemand].filter((image) => coming.has(image)).map(({ name }) => name);
  }

  /** The values that it was last installed with. */
  async readValues(): Promise<unknown> {
    return await readReleaseValues(this.#getTarget());
  }

  #getTarget(): { helm: string; kubeconfig: string } {
    return { helm: getBinaryPath('helm', 'helm'), kubeconfig: paths.kubeconfig };
  }
}

/**
 * Selects the images to build: those of the cluster itself and the requested ones, with their base images. In the order of
 * the catalog, in which each image comes after its base images.
 *
 * @throws UsageError for a name that is not in the catalog
 */
export function selectImages(names: readonly string[]): readonly ImageRecipe[] {
  const chosen = new Set(images.filter((image) => image.on === undefined));
  for (const name of names) for (const image of findByName(name)) chosen.add(image);
  // From last to first, so that the base image of a base image is found too.
  for (const image of images.toReversed())
    if (chosen.has(image))
      for (const base of images.filter((each) => image.bases.includes(each.name))) chosen.add(base);
  return images.filter((image) => chosen.has(image));
}

function findByName(name: string): readonly ImageRecipe[] {
  const demanded = images.filter((image) => image.on === 'demand');
  if (name === 'all') return demanded;
  if (name === 'planned') return demanded.filter(isPlanned);
  const matches = demanded.filter((image) => image.name === name || image.name.startsWith(`${name}-`));
  if (matches.length === 0)
    throw new UsageError(
      `--base-images: there is no "${name}"; there are all, planned, ${demanded.map((image) => image.name).join(', ')}`,
    );
  return matches;
}

/** Whether the plan of some language starts from it. */
function isPlanned(image: ImageRecipe): boolean {
  return listNames(image).some((name) => baseImages.includes(name));
}

/** The names of an image as written in FROM. */
export function listNames({
  host,
  repository,
  tags,
}: Pick<ImageRecipe, 'host' | 'repository' | 'tags'>): readonly string[] {
  const name = host === undefined ? repository.replace(/^library\//, '') : `${host}/${repository}`;
  return tags.map((tag) => `${name}:${tag}`);
}

/**
 * The base images of planned builds that the node's registry lacks and that it cannot make, as written in FROM. `coming`
 * are the images that this run builds; earlier runs may have left others.
 */
export async function findMissingImages(coming: readonly ImageRecipe[]): Promise<string[]> {
  const built = new Set([...coming, ...imagesOnDemand].flatMap(listNames));
  const absent = baseImages.filter((image) => !built.has(image));
  const digests = await Promise.all(absent.map((image) => findImageDigest(image)));
  return absent.filter((_, index) => digests[index] === undefined);
}

/** Images that the image maker makes when an app first needs them. */
const imagesOnDemand = images.filter(({ on }) => on === 'demand');

/** Chart settings of the images of PostgreSQL and backing services that every node builds, by digest. */
export async function formatBuiltServices(): Promise<string[]> {
  const images = await Promise.all(
    serviceImages.map(async ({ name }) => `services.images.${name}=${await resolveTaggedReference(name)}`),
  );
  return [...images, `postgres.image=${await resolveTaggedReference('postgres')}`];
}

/** Chart settings that offer the backing services whose images are made on demand: by digest once they exist. */
export async function formatOfferedServices(coming: readonly ImageRecipe[]): Promise<string[]> {
  const offers = await Promise.all(
    servicesOnDemand.map(async (image) => {
      const [reference = ''] = listNames(image);
      const isComing = coming.some((each) => each.name === image.name);
      const digest = isComing ? undefined : await findImageDigest(reference);
      if (digest !== undefined) return `services.images.${image.name}=${reference}@${digest}`;
      return `services.images.${image.name}=${isComing ? await resolveTaggedReference(image.name) : reference}`;
    }),
  );
  return offers;
}

async function findImageDigest(image: string): Promise<string | undefined> {
  // The node's registry has images of other registries under the same paths.
  const [name = '', tag = 'latest'] = image.replace(/^[^/]+\.[^/]+\//, '').split(':');
  const repository = name.includes('/') ? name : `library/${name}`;
  return await findDigest(repository, tag);
}
