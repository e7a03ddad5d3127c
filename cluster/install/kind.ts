// kind, where a Docker engine answers: a cluster in a container, filled with the same manifests as the one-machine
// node.
import { createHash } from 'node:crypto';
import { cp, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { stringify } from 'yaml';
import type { Arguments } from '../arguments.ts';
import { kubectlFor, type Kubectl } from '../kubectl.ts';
import {
  installDemoRouter,
  installGateway,
  installGitServer,
  installNamespaces,
  installPushSecret,
} from '../node/addons.ts';
import { node } from '../node/settings.ts';
import { paths } from '../paths.ts';
import { lineReporter, say } from '../report.ts';
import { run, succeeds } from '../shell.ts';
import { runSteps, type Step } from '../steps.ts';
import type { Target } from '../targets.ts';
import { installChart, waitForRelease } from './helm.ts';
import { submitSample, writeAddresses } from './sample.ts';
import { findTool, onPath } from './tools.ts';

const cluster = 'moorage';
const container = 'moorage-control-plane';
const registry = 'moorage-registry';
const gatewayApi = 'https://github.com/kubernetes-sigs/gateway-api/releases/download/v1.4.1/standard-install.yaml';

async function requireKind(): Promise<string> {
  const kind = await onPath('kind');
  if (kind === undefined)
    throw new Error(
      'a Docker engine answers here, but there is no `kind` command: install it (https://kind.sigs.k8s.io), or use --context NAME with a cluster that you have',
    );
  return kind;
}

function clusterConfig(ports: { http: number; https: number }): string {
  const published = [
    [80, ports.http],
    [443, ports.https],
  ].map(([containerPort, hostPort]) => ({ containerPort, hostPort, listenAddress: '127.0.0.1' }));
  return stringify({
    kind: 'Cluster',
    apiVersion: 'kind.x-k8s.io/v1alpha4',
    networking: { podSubnet: node.podCidr, serviceSubnet: node.serviceCidr },
    containerdConfigPatches: [
      '[plugins."io.containerd.cri.v1.images".registry]\nconfig_path = "/etc/containerd/certs.d"\n',
    ],
    nodes: [{ role: 'control-plane', extraPortMappings: published }],
  });
}

async function addressOf(name: string): Promise<string> {
  return await run('docker', ['inspect', '-f', '{{.NetworkSettings.Networks.kind.IPAddress}}', name]);
}

async function ensureCluster(kind: string, ports: { http: number; https: number }): Promise<string> {
  if ((await run(kind, ['get', 'clusters'])).split('\n').includes(cluster)) {
    await run(kind, ['export', 'kubeconfig', '--name', cluster, '--kubeconfig', paths.kubeconfig]);
    return 'runs';
  }
  await run(
    kind,
    ['create', 'cluster', '--name', cluster, '--kubeconfig', paths.kubeconfig, '--wait', '180s', '--config', '-'],
    { input: clusterConfig(ports) },
  );
  return 'made';
}

async function ensureRegistry(): Promise<undefined> {
  if (!(await succeeds('docker', ['inspect', registry])))
    await run('docker', ['run', '--detach', '--restart=always', '--name', registry, '--network=kind', 'registry:2']);
  const folder = `/etc/containerd/certs.d/${node.registryHost}`;
  const hosts = `[host."http://${await addressOf(registry)}:${node.registryPort}"]\n`;
  await run('docker', ['exec', '-i', container, 'sh', '-c', `mkdir -p '${folder}' && cat > '${folder}/hosts.toml'`], {
    input: hosts,
  });
  return undefined;
}

/** Builds an image, tags it by its content, and puts it into the cluster. */
async function load(kind: string, name: string, args: readonly string[]): Promise<string> {
  const id = await run('docker', ['build', '--quiet', ...args]);
  const reference = `moorage/${name}:${createHash('sha256').update(id).digest('hex').slice(0, 16)}`;
  await run('docker', ['tag', id, reference]);
  await run(kind, ['load', 'docker-image', reference, '--name', cluster]);
  return reference;
}

async function loadGitServer(kind: string): Promise<string> {
  const scratch = await mkdtemp(join(tmpdir(), 'moorage-image-'));
  try {
    await cp(join(paths.root, 'cluster', 'images', 'git-server'), scratch, { recursive: true });
    await cp(join(paths.root, 'cluster', 'git-server', 'server.ts'), join(scratch, 'server.ts'));
    return await load(kind, 'git-server', [scratch]);
  } finally {
    await rm(scratch, { recursive: true, force: true });
  }
}

async function install(
  kubectl: Kubectl,
  images: ReadonlyMap<string, string>,
  ports: { https: number },
): Promise<undefined> {
  const helm = await findTool('helm', 'helm');
  const [own, api] = await Promise.all([addressOf(registry), addressOf(container)]);
  const settings = [
    ...[
      `image=${images.get('moorage') ?? ''}`,
      `pipelineImage=${images.get('moorage-pipeline') ?? ''}`,
      `externalPort=${ports.https}`,
    ],
    // Docker Hub is in reach here, and the registry holds nothing but apps.
    ...[
      'registry.mirror=',
      `registry.cidrs={${own}/32}`,
      `network.nodeCidrs={${api}/32}`,
      `network.apiServer.cidrs={${api}/32}`,
    ],
  ];
  await installChart(
    { helm, kubeconfig: paths.kubeconfig },
    [join(paths.root, 'cluster', 'values.local.yaml')],
    settings,
  );
  await installPushSecret(kubectl, JSON.stringify({ auths: {} }));
  return undefined;
}

function steps(kind: string, kubectl: Kubectl, ports: { http: number; https: number }): Step[] {
  const images = new Map<string, string>();
  const image = (name: string, make: () => Promise<string>): Step => ({
    name: `image ${name}`,
    needs: ['kind cluster'],
    lane: 'images',
    run: async () => {
      images.set(name, await make());
      return images.get(name);
    },
  });
  const target = (name: string): Step => image(name, () => load(kind, name, ['--target', name, paths.root]));
  return [
    { name: 'kind cluster', run: () => ensureCluster(kind, ports) },
    { name: 'registry', needs: ['kind cluster'], run: ensureRegistry },
    ...['moorage', 'moorage-pipeline'].map(target),
    image('git-server', () => loadGitServer(kind)),
    { name: 'namespaces', needs: ['registry'], run: async () => installNamespaces(kubectl, await addressOf(registry)) },
    {
      name: 'gateway api',
      needs: ['kind cluster'],
      run: async () => {
        await kubectl(['apply', '--server-side', '-f', gatewayApi]);
        return undefined;
      },
    },
    // Docker publishes the ports of the container that is the node; inside it the gateway takes the plain ones.
    {
      name: 'gateway',
      needs: ['namespaces', 'gateway api'],
      run: () =>
        installGateway(kubectl, { image: 'traefik:v3.6.12', address: '0.0.0.0', ports: { http: 80, https: 443 } }),
    },
    {
      name: 'git server',
      needs: ['namespaces', 'gateway api', 'image git-server'],
      run: () => installGitServer(kubectl, images.get('git-server') ?? ''),
    },
    {
      name: 'moorage chart',
      needs: ['gateway', 'image moorage', 'image moorage-pipeline'],
      run: () => install(kubectl, images, ports),
    },
    {
      name: 'demo router',
      needs: ['namespaces', 'image moorage'],
      run: () => installDemoRouter(kubectl, images.get('moorage') ?? ''),
    },
    {
      name: 'moorage ready',
      needs: ['moorage chart', 'git server', 'demo router'],
      run: () => waitForRelease(kubectl),
    },
    { name: 'addresses', run: () => writeAddresses(ports) },
    { name: 'sample app', needs: ['moorage ready', 'addresses'], run: () => submitSample(ports) },
  ];
}

/** A kind cluster named moorage. It has seen less use than the one-machine node, and says so. */
export function kindCluster(args: Arguments): Target {
  const ports = { http: args.httpPort ?? 80, https: args.httpsPort ?? 443 };
  const makeKubectl = async (): Promise<Kubectl> =>
    kubectlFor(await findTool('kubectl', 'kubernetes'), paths.kubeconfig);
  return {
    up: async () => {
      say('kind cluster (a Docker engine answers here); this way is tried less often than the one-machine node');
      await runSteps(steps(await requireKind(), await makeKubectl(), ports), lineReporter());
      say(`\nMoorage is up.\n\n  kubeconfig    ${paths.kubeconfig}\n  certificate   ${paths.authority}`);
    },
    down: async () => {
      await run(await requireKind(), ['delete', 'cluster', '--name', cluster, '--kubeconfig', paths.kubeconfig]);
      if (await succeeds('docker', ['inspect', registry]))
        await run('docker', ['rm', '--force', '--volumes', registry]);
      for (const file of [paths.kubeconfig, paths.gitPassword, paths.authority, paths.installation])
        await rm(file, { force: true });
    },
    status: async () => {
      const kubectl = await makeKubectl();
      try {
        say(await kubectl(['get', 'nodes,pods', '--all-namespaces']));
        await waitForRelease(kubectl);
        return [];
      } catch (error) {
        return [error instanceof Error ? error.message : String(error)];
      }
    },
  };
}
