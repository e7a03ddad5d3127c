// Brings Moorage up on a kind cluster: the list of steps, and what each needs.
import { join } from 'node:path';
import { installChart, releaseValues, waitForRelease, type HelmTarget } from '../install/helm.ts';
import { packageSettings } from '../install/package-hosts.ts';
import { submitSample, writeAddresses } from '../install/sample.ts';
import { toolSettings, toolWorkloads, type ToolServiceName } from '../install/tool-services.ts';
import { presentTools } from '../install/tool-steps.ts';
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
import { paths } from '../../localnode/paths.ts';
import type { Step } from '../../localnode/steps.ts';
import { ensureCluster, nodeKubectl as kubectl, shrinkDns } from './cluster.ts';
import { addressOf, containers } from './docker.ts';
import { buildProduct, publishGitServer, publishNodeNetwork, publishProduct, seed } from './images.ts';
import { proveIsolation } from './isolation.ts';
import { enforcerLog, installNetwork } from './network.ts';
import { cleanRegistry } from './registry-cleanup.ts';
import { ensureRegistry, pushConfig } from './registry.ts';
import { seeds, traefikImage } from './versions.ts';

/** Images by name: as Docker knows them, and as pods pull them. */
interface Images {
  built: Map<string, string>;
  published: Map<string, string>;
}

function named(images: ReadonlyMap<string, string>, name: string): string {
  const image = images.get(name);
  if (image === undefined) throw new Error(`there is no image ${name} yet`);
  return image;
}

/** Moorage's release on kind, whose images are known once they are published. */
export class KindRelease {
  readonly images: Images = { built: new Map(), published: new Map() };
  readonly ports: GatewayPorts;
  readonly #target: HelmTarget;

  constructor(helm: string, ports: GatewayPorts) {
    this.#target = { helm, kubeconfig: paths.kubeconfig };
    this.ports = ports;
  }

  /** Installs or upgrades it, with settings of services behind tools. */
  async install(tools: readonly string[]): Promise<void> {
    const values = [join(paths.root, 'cli', 'values.local.yaml')];
    await installChart(this.#target, values, [...(await settingsOf(this.images, this.ports)), ...tools]);
  }

  /** Values that it was last given. */
  async values(): Promise<unknown> {
    return await releaseValues(this.#target);
  }
}

async function settingsOf(images: Images, ports: GatewayPorts): Promise<string[]> {
  const [registry, api] = await Promise.all([addressOf(containers.registry), addressOf(containers.node)]);
  return [
    `image=${named(images.published, 'moorage')}`,
    `workers.image=${named(images.published, 'moorage-workers')}`,
    `pipelineImage=${named(images.published, 'moorage-pipeline')}`,
    `externalPort=${ports.https}`,
    `registry.cidrs={${registry}/32}`,
    `network.nodeCidrs={${api}/32}`,
    `network.apiServer.cidrs={${api}/32}`,
    ...(await packageSettings()),
  ];
}

/** Addresses that no app may reach: the node's API server and kubelet, and the registry. */
async function closedAddresses(): Promise<string[]> {
  const [registry, api] = await Promise.all([addressOf(containers.registry), addressOf(containers.node)]);
  return [`${api}:6443`, `${api}:10250`, `${registry}:${node.registryPort}`];
}

function imageSteps(images: Images): Step[] {
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
    // In the order in which the cluster waits for them.
    publish('moorage', ['build moorage'], () => publishProduct('moorage', named(images.built, 'moorage'))),
    publish('node-network', ['build moorage'], async () => {
      const { built, published } = await publishNodeNetwork(named(images.built, 'moorage'));
      images.built.set('node-network', built);
      return published;
    }),
    publish('git-server', ['build moorage'], async () => (await publishGitServer()).published),
    publish('moorage-workers', ['build moorage-workers'], () =>
      publishProduct('moorage-workers', named(images.built, 'moorage-workers')),
    ),
    publish('moorage-pipeline', ['build moorage-pipeline'], () =>
      publishProduct('moorage-pipeline', named(images.built, 'moorage-pipeline')),
    ),
    ...seeds.map((image): Step => ({
      name: `image ${image}`,
      needs: ['registry'],
      lane: 'downloads',
      run: () => seed(image),
    })),
  ];
}

/** All steps from a Docker engine to the sample app. */
export function kindSteps(kind: string, release: KindRelease, wanted: readonly ToolServiceName[]): Step[] {
  const { images, ports } = release;
  const published = (name: string): string => named(images.published, name);
  return [
    { name: 'kind cluster', run: () => ensureCluster(kind, ports) },
    { name: 'registry', needs: ['kind cluster'], run: ensureRegistry },
    ...imageSteps(images),
    {
      name: 'namespaces',
      needs: ['registry'],
      run: async () => installNamespaces(kubectl, await addressOf(containers.registry)),
    },
    { name: 'gateway api', needs: ['kind cluster'], run: () => installGatewayApi(kubectl) },
    { name: 'one dns server', needs: ['kind cluster'], run: shrinkDns },
    {
      name: 'network policy',
      needs: ['namespaces', 'image node-network'],
      run: () => installNetwork(published('node-network')),
    },
    {
      name: 'network policies',
      needs: ['network policy'],
      // kind brings its own provisioner.
      run: async () => installPolicies(kubectl, await addressOf(containers.node), 'local-path-storage'),
    },
    {
      name: 'isolation',
      needs: ['network policies', 'image moorage'],
      run: async () => proveIsolation(kubectl, published('moorage'), await closedAddresses(), enforcerLog),
    },
    // Docker publishes the ports of the container that is the node; inside it the gateway takes the plain ones.
    {
      name: 'gateway',
      needs: ['network policy', 'gateway api', 'image moorage', `image ${traefikImage}`],
      run: () =>
        installGateway(kubectl, {
          image: traefikImage,
          shipperImage: published('moorage'),
          address: '0.0.0.0',
          ports: { http: 80, https: 443 },
          asksByName: false,
        }),
    },
    {
      name: 'git server',
      needs: ['network policy', 'gateway api', 'image git-server'],
      run: () => installGitServer(kubectl, published('git-server')),
    },
    {
      name: 'moorage chart',
      needs: ['gateway', 'isolation', 'image moorage-workers', 'image moorage-pipeline'],
      run: async () => {
        await installPushSecret(kubectl, await pushConfig());
        await release.install(toolSettings(presentTools(await release.values(), wanted)));
        return undefined;
      },
    },
    {
      name: 'demo router',
      needs: ['network policy', 'image moorage'],
      run: () => installDemoRouter(kubectl, published('moorage')),
    },
    {
      name: 'moorage ready',
      needs: ['moorage chart', 'git server', 'demo router', ...seeds.map((image) => `image ${image}`)],
      run: () => waitForRelease(kubectl, toolWorkloads),
    },
    {
      name: 'registry cleanup',
      needs: ['moorage ready'],
      run: () => cleanRegistry(named(images.built, 'node-network')),
    },
    { name: 'addresses', run: () => writeAddresses(ports) },
    {
      name: 'sample app',
      needs: ['registry cleanup', 'addresses'],
      run: () => submitSample(ports, { state: paths.kind, logs: paths.kind }),
    },
  ];
}
