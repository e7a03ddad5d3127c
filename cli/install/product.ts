// Moorage itself on the one-machine node: its images, its chart, and the sample app.
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { contentKey, folderKey, readText } from '../../localnode/files.ts';
import { ensureArchive, imageKey, imageOf, imageReference, pushArchive } from '../../localnode/images/build.ts';
import type { Kubectl } from '../../localnode/kubectl.ts';
import { installDemoRouter, installGateway, installPushSecret } from '../../localnode/node/addons.ts';
import type { GatewayPorts } from '../../localnode/node/gateway/ports.ts';
import { dockerConfig } from '../../localnode/node/registry/registry.ts';
import { ensureProcess } from '../../localnode/node/daemons/processes.ts';
import { collectorSpec } from '../../localnode/node/registry/collector.ts';
import { cleanRegistry } from '../../localnode/node/registry/registry-cleanup.ts';
import { node, processFolders } from '../../localnode/node/settings.ts';
import { paths } from '../../localnode/paths.ts';
import { limitBytes } from '../../localnode/registry/storage.ts';
import type { Report, Step } from '../../localnode/steps.ts';
import { waitForRelease } from './helm.ts';
import { productTargets, type NodeRelease, type ProductTarget } from './node-release.ts';
import { submitSample, writeAddresses } from './sample.ts';
import { toolSettings, toolWorkloads } from './tool-services.ts';
import { presentTools } from './tool-steps.ts';

/** What the root Dockerfile copies into all images, what into one alone, and base images. */
const sources = {
  folders: ['lib', 'crds', 'controller', 'activator', 'api'],
  files: ['Dockerfile', '.dockerignore', '.npmrc', 'package.json', 'package-lock.json', 'LICENSE'],
};
const manifests: Record<ProductTarget, readonly string[]> = {
  moorage: ['manifests'],
  'moorage-workers': [],
  'moorage-pipeline': [],
};
const bases: Record<ProductTarget, readonly string[]> = {
  moorage: ['node-24'],
  'moorage-workers': ['node-24'],
  'moorage-pipeline': ['node-24', 'buildkit', 'gitleaks'],
};

async function productKey(target: ProductTarget): Promise<string> {
  const folders = await Promise.all(sources.folders.map((folder) => folderKey(join(paths.root, folder))));
  const own = await Promise.all(manifests[target].map((folder) => folderKey(join(paths.root, folder), ['samples'])));
  const files = await Promise.all(sources.files.map(async (file) => (await readText(join(paths.root, file))) ?? ''));
  const keys = await Promise.all(bases[target].map((name) => imageKey(imageOf(name))));
  return contentKey([target, ...folders, ...own, ...files, ...keys]);
}

/** Builds and pushes one target of the root Dockerfile. Returns the image by digest. */
async function ensureProductImage(
  target: ProductTarget,
  report: Report,
): Promise<{ reference: string; detail: string }> {
  const key = await productKey(target);
  const { archive, cached } = await ensureArchive(
    { name: target, key, context: paths.root, target, compression: 'zstd' },
    undefined,
    report,
  );
  const { digest } = await pushArchive(archive, `moorage/${target}`, [key]);
  return { reference: `${node.registryHost}/moorage/${target}@${digest}`, detail: cached ? 'unchanged' : 'built' };
}

/** Has the model router itself limit what the platform key may spend, where it can. Reports what it came to. */
async function ensureKeyLimit(kubectl: Kubectl): Promise<string> {
  const program = 'node api/models/router/limit-command.ts --ensure || true';
  const command = ['-n', 'moorage-system', 'exec', 'deploy/moorage-api', '-c', 'api', '--', 'sh', '-c', program];
  return (await kubectl(command)).trim();
}

/** Base images of the pipeline's build plans. */
const pipelineBases = ['node-24', 'python-3.11', 'nginx'];

/** The steps from an empty cluster to Moorage running on it. */
export function productSteps(kubectl: Kubectl, ports: () => GatewayPorts, release: NodeRelease): Step[] {
  const { references } = release;
  const image = (target: ProductTarget): Step => ({
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
    ...productTargets.map(image),
    {
      name: 'gateway',
      needs: ['dns', 'gateway api', 'network policy', 'image traefik', 'image moorage'],
      run: async () =>
        installGateway(kubectl, {
          image: await imageReference('traefik'),
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
        ...release.serviceImages().map((name) => `image ${name}`),
        'compile helm',
        'gateway',
        'network policy',
        'runtime class',
      ],
      run: async () => {
        await installPushSecret(kubectl, await dockerConfig());
        await release.install(toolSettings(presentTools(await release.values(), release.tools)));
        return (await readFile(join(paths.root, 'charts', 'moorage', 'Chart.yaml'), 'utf8')).match(
          /^version:.*$/m,
        )?.[0];
      },
    },
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
        await ensureProcess(processFolders, await collectorSpec());
        return text;
      },
    },
    { name: 'addresses', needs: ['packages'], run: () => writeAddresses(ports()) },
    {
      name: 'sample app',
      needs: ['registry cleanup', 'addresses', ...pipelineBases.map((base) => `image ${base}`)],
      run: (report) => submitSample(ports(), paths, report),
    },
  ];
}
