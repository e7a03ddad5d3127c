// A kind cluster named moorage to run on: what `up`, `down` and `status` do there.
import { mkdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { Arguments } from '../arguments.ts';
import { checkWorkloads } from '../install/workloads.ts';
import { toolPhase } from '../install/tool-steps.ts';
import { findHelm, findKind } from '../install/tools.ts';
import { withLock } from '../lock.ts';
import { platformNamespaces } from '../node/status.ts';
import { paths } from '../../localnode/paths.ts';
import { lineReporter, say } from '../report.ts';
import { run } from '../../localnode/shell.ts';
import { runSteps } from '../../localnode/steps.ts';
import { sayUp, type Target } from '../target.ts';
import { nodeKubectl, removeCluster } from './cluster.ts';
import { containerExists, containers, docker, dockerAnswers, downloadedImages, hasImage } from './docker.ts';
import { ownPrefix } from './images.ts';
import { decidePorts, publishedPorts, requireFreePorts } from './ports.ts';
import { removeRegistry } from './registry.ts';
import { kindToolHost } from './tools.ts';
import { KindRelease, kindSteps } from './up.ts';
import { downloads, nodeImage } from './versions.ts';

/** One cluster an engine, whichever checkout asks for it. */
const lock = join(paths.cache, 'kind.lock');

async function requireDocker(): Promise<void> {
  if (!(await dockerAnswers()))
    throw new Error(
      'no Docker engine answers (`docker info` fails), and kind needs one: start Docker and run this again',
    );
}

async function up(args: Arguments): Promise<void> {
  await requireDocker();
  const begun = Date.now();
  const published = await publishedPorts();
  const ports = decidePorts({ http: args.httpPort, https: args.httpsPort }, published);
  if (published === undefined) await requireFreePorts(ports);
  say('kind cluster in Docker');
  if (!(await hasImage(nodeImage))) say(`The first run downloads ${downloads}. Later ones take less than a minute.`);
  await mkdir(paths.kind, { recursive: true });
  const [kind, helm] = [await findKind(), await findHelm()];
  const release = new KindRelease(helm, ports);
  const tools = toolPhase(kindToolHost(release), args.tools);
  await runSteps(kindSteps(kind, release, args.tools), lineReporter());
  sayUp(begun, ports);
  await runSteps(tools.steps, lineReporter());
  say(`\n${await tools.summary()}`);
}

/** Removes the images that `up` built or downloaded. Those that something else uses stay. */
async function removeImages(): Promise<string> {
  const own = await docker(['images', '--format', '{{.Repository}}:{{.Tag}}', '--filter', `reference=${ownPrefix}/*`]);
  const names = [...own.split('\n').filter((name) => name !== ''), ...(await downloadedImages())];
  let count = 0;
  for (const name of names)
    count += await docker(['rmi', name]).then(
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

async function down(args: Arguments): Promise<void> {
  await requireDocker();
  const kind = await findKind();
  await runSteps(
    [
      { name: 'kind cluster', run: () => removeCluster(kind) },
      { name: 'registry', run: removeRegistry },
      ...(args.purge ? [{ name: 'images', needs: ['kind cluster', 'registry'], run: removeImages }] : []),
      { name: 'files', needs: ['kind cluster', 'registry'], run: () => removeFiles(args.purge) },
    ],
    lineReporter(),
  );
}

async function status(): Promise<string[]> {
  await requireDocker();
  if (!(await containerExists(containers.node))) return ['there is no kind cluster: `npm run up` creates one'];
  try {
    say(await nodeKubectl(['get', 'nodes,pods', '--all-namespaces']));
    return await checkWorkloads(nodeKubectl, platformNamespaces);
  } catch (error) {
    return [error instanceof Error ? error.message : String(error)];
  }
}

/** The kind cluster. */
export function kindTarget(args: Arguments): Target {
  return { up: () => withLock(lock, () => up(args)), down: () => withLock(lock, () => down(args)), status };
}
