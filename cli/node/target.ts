// Runs `up`, `down` and `status` on the one-machine node.
import { join } from 'node:path';
import type { Arguments, Target } from '../arguments.ts';
import { selectImages, NodeRelease, createProductSteps } from '../install/product.ts';
import { annotations } from '../../crds/names.ts';
import { createToolPhase, readSearxngImage, type ToolHost, type ToolImage } from '../install/tool-services.ts';
import { withLock } from '../lock.ts';
import { lineReporter, printAddresses, say } from '../report.ts';
import { runSteps } from '../../localnode/steps.ts';
import { downSteps } from '../../localnode/node/down.ts';
import { requireSpace, requireNodeMachine } from '../../localnode/node/disk/space.ts';
import { choosePorts } from '../../localnode/node/gateway/ports.ts';
import { ensureProcess } from '../../localnode/node/daemons/processes.ts';
import { collectorSpec, stopCollector } from '../../localnode/node/registry/registry-cleanup.ts';
import { processFolders, nodeKubectl } from '../../localnode/node/settings.ts';
import { checkNode } from './status.ts';
import { nodeSteps, stopBuildkit } from '../../localnode/node/up.ts';
import { ensureImage, imageBytes, imageOf, imageReference } from '../../localnode/images/build.ts';
import { registryBytes } from '../../localnode/registry/storage.ts';
import { run } from '../../localnode/shell.ts';
import { askRegistry, digestAt, dockerConfigFolder, registryAddress } from '../../localnode/node/registry/registry.ts';

/** Outside the folders that `down` removes. */
const lock = '/run/lock/moorage.lock';

async function up(args: Arguments): Promise<void> {
  const images = selectImages(args.baseImages);
  await requireNodeMachine();
  await requireSpace(args.tools.length > 0);
  const begun = Date.now();
  const ports = await choosePorts({ http: args.httpPort, https: args.httpsPort });
  say('one-machine Kubernetes node');
  const release = new NodeRelease({ ports: () => ports, images, tools: args.tools });
  const tools = createToolPhase(createToolHost(release), args.tools);
  try {
    const steps = [
      ...nodeSteps(() => ports, images, [annotations.disk]),
      ...createProductSteps(nodeKubectl, () => ports, release),
    ];
    await runSteps(steps, lineReporter());
    printAddresses(begun, ports);
    // The collector would stop the registry during a push.
    await stopCollector();
    await runSteps(tools.steps, lineReporter());
    await ensureProcess(processFolders, await collectorSpec());
  } finally {
    await stopBuildkit();
  }
  say(`\n${await tools.summary()}`);
}

/** The one-machine node. */
export function createNodeTarget(args: Arguments): Target {
  return {
    up: () => withLock(lock, () => up(args)),
    down: () =>
      withLock(lock, async () => {
        await requireNodeMachine();
        await runSteps(downSteps(args.purge), lineReporter());
      }),
    status: checkNode,
  };
}

/** Copies SearXNG from Docker Hub into the node's registry, once. Throws if Docker Hub cannot be reached. */
async function copySearxng(): Promise<ToolImage> {
  const { reference, repository, tag } = await readSearxngImage();
  if ((await digestAt(repository, tag)) === undefined)
    await run('skopeo', [
      ...['--command-timeout', '300s', 'copy', '--quiet', '--insecure-policy', '--dest-tls-verify=false'],
      ...['--authfile', join(await dockerConfigFolder(), 'config.json')],
      ...[`docker://${reference}`, `docker://${registryAddress}/${repository}:${tag}`],
    ]);
  const read = async (each: string): Promise<string> => (await askRegistry(`/v2/${repository}/manifests/${each}`)).body;
  return { reference, bytes: await registryBytes(tag, read) };
}

function createToolHost(release: NodeRelease): ToolHost {
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
