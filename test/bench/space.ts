// Many builds in a row on a small registry, and what they take on its disk. Each is a build by BuildKit with the
// arguments of a pipeline, through the registry proxy, with image and layer cache; after each, the registry is pruned as
// the operator does it, and collected as the node does it. The times of grace are short, since the builds are.
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { builds, keepsAll } from './space-options.ts';
import { collect, isWorthwhile } from '../../localnode/registry/storage.ts';
import { toWorkspacePaths, pipelineInput } from '../../controller/pipeline/contract.ts';
import { createClientEnvironment } from '../../controller/pipeline/build/build.ts';
import {
  buildMetadata,
  formatSourcePolicy,
  startDaemon,
  buildImageArguments,
  chooseCache,
} from '../../controller/pipeline/build/buildkit.ts';
import { run } from '../../lib/child-process.ts';
import { openRepository, pruneApp } from '../../controller/space/pruner.ts';
import { formatCacheRepository, formatImageRepository, formatImageTag } from '../../crds/names.ts';
import { createPruneToken } from '../../lib/app-tokens.ts';
import { labUid, limits } from '../support/pipeline/lab.ts';
import { fillRegistry, addProgramsToPath, startRegistry, tokenSecret } from '../support/pipeline/registry.ts';
import { makeSmallDisk } from '../support/registry/small-disk.ts';

const mebibyte = 1024 ** 2;
const diskMebibytes = 512;
const payloadBytes = 2 * mebibyte;
const growthBytes = 32 * mebibyte;
const graceMs = 10_000;
const historyLength = 20;
const imageLimit = 3;
const app = { name: 'hello', uid: labUid };

await addProgramsToPath();
const disk = await makeSmallDisk(diskMebibytes);
const root = await mkdtemp(join(tmpdir(), 'moorage-space-'));
const registry = await startRegistry(join(disk.folder, 'data'));
await fillRegistry(registry, ['debian-bookworm'], () => {
  throw new Error('the image debian-bookworm is not in the cache: run npm run up, or a pipeline test, first');
});
const proxy = registry.proxy.host;
const token = registry.proxy.tokenOf(app);
const common = {
  app: app.name,
  repo: 'http://none.invalid/a/b',
  commit: '0'.repeat(40),
  path: '.',
  build: { strategy: 'auto' as const, dockerfile: 'Dockerfile', args: [], env: [] },
  image: `${registry.host}/${formatImageRepository(app)}`,
  push: `${proxy}/${formatImageRepository(app)}`,
  cache: `${proxy}/${formatCacheRepository(app)}`,
  cacheBytes: 64 * mebibyte,
  plainHosts: [proxy],
  mirror: proxy,
  limits,
};
const paths = toWorkspacePaths(join(root, 'workspace'), join(root, 'buildkit'));
for (const folder of [paths.notes, paths.source]) await mkdir(folder, { recursive: true });
const daemon = await startDaemon(pipelineInput.parse(common), paths);
const policyFile = join(paths.notes, 'source-policy.json');
await writeFile(policyFile, formatSourcePolicy(pipelineInput.parse(common)));
const environment = await createClientEnvironment(proxy, token, join(root, 'client'));

/** The digest of what was pushed; undefined where the build fails, as every tenth does. */
async function build(number: number): Promise<string | undefined> {
  const fails = number % 10 === 0;
  await writeFile(join(paths.source, 'payload'), randomBytes(payloadBytes));
  const dockerfile = join(paths.source, 'Dockerfile');
  const between = `RUN head -c ${payloadBytes} /dev/urandom > /between && ${fails ? 'false' : 'true'}`;
  await writeFile(
    dockerfile,
    `FROM debian:bookworm-slim AS made\nCOPY payload /payload\n${between}\nFROM debian:bookworm-slim\nCOPY --from=made /payload /payload\n`,
  );
  const input = pipelineInput.parse({ ...common, tag: formatImageTag(number) });
  const metadataFile = join(paths.notes, 'build-metadata.json');
  const ended = await run(
    'buildctl',
    buildImageArguments({
      input,
      notes: { plan: { strategy: 'dockerfile', reason: '' }, dockerfile, authored: true, context: paths.source },
      cache: await chooseCache(input, undefined, token),
      address: daemon.address,
      time: number,
      policyFile,
      metadataFile,
      environment,
    }),
    { env: environment },
  );
  // A pipeline pod begins with an empty builder.
  await run('buildctl', ['--addr', daemon.address, 'prune', '--all'], { env: environment });
  if (fails) {
    assert.notEqual(ended.code, 0);
    return undefined;
  }
  if (ended.code !== 0) throw new Error(ended.stderr.slice(-2_000));
  return buildMetadata.parse(JSON.parse(await readFile(metadataFile, 'utf8')))['containerimage.digest'];
}

const mebibytes = (bytes: number): string => `${(bytes / mebibyte).toFixed(0)} MiB`;
const row = (...cells: readonly (string | number)[]): void => {
  process.stdout.write(`${cells.map((cell) => String(cell).padStart(14)).join('')}\n`);
};

let history: { number: number; image?: string }[] = [];
const counted = { removed: 0, collections: 0, longestMs: 0 };
let peak = 0;
let before = await disk.usedBytes();

async function keepSpace(served: string | undefined): Promise<void> {
  const options = { url: `http://${proxy}`, tokenSecret, imageLimit, cacheBytes: common.cacheBytes };
  const needed = new Set(served === undefined ? [] : [served]);
  counted.removed += (await pruneApp(app, { needed, history }, options, () => true)).removed;
  if (!isWorthwhile(await disk.usedBytes(), before, growthBytes)) return;
  const runWhileStopped = async (work: () => Promise<number>): Promise<number> => {
    const begun = performance.now();
    try {
      return await registry.runWhileStopped(work);
    } finally {
      counted.longestMs = Math.max(counted.longestMs, performance.now() - begun);
    }
  };
  const used = (): Promise<Set<string>> => Promise.resolve(new Set([app.uid, ...needed]));
  await collect({ ...registry, listUsed: used, runWhileStopped }, Date.now() - graceMs);
  counted.collections += 1;
  before = await disk.usedBytes();
}

const begun = performance.now();
process.stdout.write(`base image alone: ${mebibytes(before)} of ${diskMebibytes} MiB\n`);
row('builds', 'disk used', 'peak so far', 'tags', 'removed', 'collections', 'longest stop', 'seconds');
try {
  let served: string | undefined;
  for (let number = 1; number <= builds; number += 1) {
    const digest = await build(number);
    // Of every fifteenth, the pod is lost after its push: the pipeline counts as a fault, and nobody knows the image.
    const isKnown = digest !== undefined && number % 15 !== 0;
    if (isKnown) served = digest;
    history = [{ number, ...(isKnown ? { image: `${common.image}@${digest}` } : {}) }, ...history];
    history = history.slice(0, historyLength);
    peak = Math.max(peak, await disk.usedBytes());
    if (!keepsAll) await keepSpace(served);
    if (number % 20 !== 0 && number !== builds) continue;
    const own = openRepository(`http://${proxy}`, formatImageRepository(app), createPruneToken(app, tokenSecret));
    row(
      number,
      mebibytes(await disk.usedBytes()),
      mebibytes(peak),
      (await own.listTags()).length,
      counted.removed,
      counted.collections,
      `${(counted.longestMs / 1000).toFixed(1)} s`,
      Math.round((performance.now() - begun) / 1000),
    );
  }
} finally {
  await daemon[Symbol.asyncDispose]();
  await registry.stop();
  await disk.remove();
  await rm(root, { recursive: true, force: true });
}
