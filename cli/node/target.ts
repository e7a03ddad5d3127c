// Runs `up`, `down` and `status` on the one-machine node.
import { join } from 'node:path';
import type { Arguments, Target } from '../arguments.ts';
import { selectImages, NodeRelease, createProductSteps } from '../install/product.ts';
import { annotations } from '../../crds/names.ts';
import { createToolPhase, readSearxngImage, type ToolHost, type ToolImage } from '../install/tool-services.ts';
import { lock, runWithLock } from '../lock.ts';
import { createLineReporter, printAddresses, printLine } from '../report.ts';
import { runSteps } from '../../localnode/steps.ts';
import { listDownSteps } from '../../localnode/node/down.ts';
import { requireSpace, requireNodeMachine } from '../../localnode/node/disk/space.ts';
import { choosePorts } from '../../localnode/node/gateway/ports.ts';
import { ensureProcess } from '../../localnode/node/daemons/processes.ts';
import { buildCollectorSpec, stopCollector } from '../../localnode/node/registry/registry-cleanup.ts';
import { processFolders, nodeKubectl } from '../../localnode/node/settings.ts';
import { buildImageMakerSpec, stopImageMaker } from './image-maker.ts';
import { checkNode } from './status.ts';
import { findNeededImages, listImageSteps, listNodeSteps, stopBuildkit } from '../../localnode/node/up.ts';
import { ensureImage, measureImageBytes, getImage, resolveImageReference } from '../../localnode/images/build.ts';
import { computeImageBytes } from '../../localnode/registry/storage.ts';
import { run } from '../../localnode/shell.ts';
import {
  askRegistry,
  findDigest,
  ensureDockerConfigFolder,
  registryAddress,
} from '../../localnode/node/registry/registry.ts';

async function startNode(args: Arguments): Promise<void> {
  const images = selectImages(args.baseImages);
  await requireNodeMachine();
  await requireSpace(args.tools.length > 0);
  const begun = Date.now();
  const ports = await choosePorts({ http: args.httpPort, https: args.httpsPort });
  printLine('one-machine Kubernetes node');
  const release = new NodeRelease({ getPorts: () => ports, images, tools: args.tools });
  const tools = createToolPhase(createToolHost(release), args.tools);
  try {
    const steps = [...listNodeSteps([annotations.disk]), ...createProductSteps(nodeKubectl, () => ports, release)];
    const neededImages = findNeededImages(steps, images);
    const firstSteps = [...steps, ...listImageSteps(neededImages)];
    await runSteps(firstSteps, createLineReporter());
    printAddresses(begun, ports);
    // The collector would stop the registry during a push.
    await stopCollector();
    const laterImages = images.filter((image) => !neededImages.includes(image));
    printLine('\nbase images of other languages, and services behind tools');
    try {
      await runSteps(listImageSteps(laterImages), createLineReporter(), firstSteps);
      await runSteps(tools.steps, createLineReporter());
    } finally {
      // Apps need both, even if a tool does not start.
      await ensureProcess(processFolders, await buildCollectorSpec());
      // It waits for the lock, so it makes nothing before this run has ended.
      await ensureProcess(processFolders, await buildImageMakerSpec());
    }
  } finally {
    await stopBuildkit();
  }
  printLine(`\n${await tools.summarize()}`);
}

/** The one-machine node. */
export function createNodeTarget(args: Arguments): Target {
  return {
    up: async () => {
      await stopImageMaker();
      await runWithLock(lock, () => startNode(args));
    },
    down: async () => {
      await stopImageMaker();
      await runWithLock(lock, async () => {
        await requireNodeMachine();
        await runSteps(listDownSteps(args.purge), createLineReporter());
      });
    },
    status: checkNode,
  };
}

/** Copies SearXNG from Docker Hub into the node's registry, once. Throws if Docker Hub cannot be reached. */
async function copySearxng(): Promise<ToolImage> {
  const { reference, repository, tag } = await readSearxngImage();
  if ((await findDigest(repository, tag)) === undefined)
    await run('skopeo', [
      ...['--command-timeout', '300s', 'copy', '--quiet', '--insecure-policy', '--dest-tls-verify=false'],
      ...['--authfile', join(await ensureDockerConfigFolder(), 'config.json')],
      ...[`docker://${reference}`, `docker://${registryAddress}/${repository}:${tag}`],
    ]);
  const read = async (each: string): Promise<string> => (await askRegistry(`/v2/${repository}/manifests/${each}`)).body;
  return { reference, bytes: await computeImageBytes(tag, read) };
}

function createToolHost(release: NodeRelease): ToolHost {
  return {
    kubectl: nodeKubectl,
    readValues: () => release.readValues(),
    build: async (name, report) => {
      await ensureImage(getImage(name), report);
      return { reference: await resolveImageReference(name), bytes: await measureImageBytes(name) };
    },
    bringSearxng: copySearxng,
    install: (settings) => release.install(settings),
  };
}
