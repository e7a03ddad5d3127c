// The one-machine node as a target: what `up`, `down` and `status` do there.
import type { Arguments } from '../arguments.ts';
import { selectImages } from '../install/select-images.ts';
import { annotations } from '../../crds/names.ts';
import { NodeRelease } from '../install/node-release.ts';
import { productSteps } from '../install/product.ts';
import { toolPhase } from '../install/tool-steps.ts';
import { withLock } from '../lock.ts';
import { lineReporter, say } from '../report.ts';
import { runSteps } from '../../localnode/steps.ts';
import { sayUp, type Target } from '../target.ts';
import { downSteps } from '../../localnode/node/down.ts';
import { requireSpace } from '../../localnode/node/disk/space.ts';
import { requireNodeMachine } from '../../localnode/node/machine.ts';
import { choosePorts } from '../../localnode/node/gateway/ports.ts';
import { ensureProcess } from '../../localnode/node/daemons/processes.ts';
import { collectorSpec, stopCollector } from '../../localnode/node/registry/collector.ts';
import { processFolders } from '../../localnode/node/settings.ts';
import { nodeStatus } from './status.ts';
import { nodeKubectl } from '../../localnode/node/kubectl.ts';
import { nodeToolHost } from './tools.ts';
import { nodeSteps, stopBuildkit } from '../../localnode/node/up.ts';

/** Outside of the folders that `down` removes. */
const lock = '/run/lock/moorage.lock';

async function up(args: Arguments): Promise<void> {
  const images = selectImages(args.baseImages);
  await requireNodeMachine();
  await requireSpace(args.tools.length > 0);
  const begun = Date.now();
  const ports = await choosePorts({ http: args.httpPort, https: args.httpsPort });
  say('one-machine Kubernetes node');
  const release = new NodeRelease({ ports: () => ports, images, tools: args.tools });
  const tools = toolPhase(nodeToolHost(release), args.tools);
  try {
    const steps = [
      ...nodeSteps(() => ports, images, [annotations.disk]),
      ...productSteps(nodeKubectl, () => ports, release),
    ];
    await runSteps(steps, lineReporter());
    sayUp(begun, ports);
    // It would stop the registry within a push.
    await stopCollector();
    await runSteps(tools.steps, lineReporter());
    await ensureProcess(processFolders, await collectorSpec());
  } finally {
    await stopBuildkit();
  }
  say(`\n${await tools.summary()}`);
}

/** The one-machine node. */
export function nodeTarget(args: Arguments): Target {
  return {
    up: () => withLock(lock, () => up(args)),
    down: () =>
      withLock(lock, async () => {
        await requireNodeMachine();
        await runSteps(downSteps(args.purge), lineReporter());
      }),
    status: nodeStatus,
  };
}
