// The walk of one submission, from POST /api/submit to a live app: the API and the operator over a real API server, and the three
// programs of the pipeline pod on a sample repository. No node takes part: the walk writes what a kubelet and the controllers of
// the cluster would, and BuildKit is a stand-in that builds nothing.
import { spawnSync } from 'node:child_process';
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { z } from 'zod';
import { containers } from '../../../crds/names.ts';
import { buildPart, getBinariesFolder } from '../../../localnode/binaries/build.ts';
import { readEnvironment, render, required } from '../chart.ts';
import { runExclusively } from '../exclusively.ts';
import { findFreePort } from '../free-port.ts';
import { program } from '../monitoring/program.ts';
import { startGateway, startRegistry } from '../monitoring/stand-ins.ts';
import {
  acceptRoute,
  createCloneEnd,
  completeJob,
  awaitDeployment,
  formatImage,
  createBuildEnd,
  createReviewEnd,
  rollOut,
  createRunningContainer,
  awaitStartedJob,
  startJob,
  writePod,
} from '../operator/stand-in.ts';
import { startWorld, waitFor, type World } from '../operator/world.ts';
import { makePod } from '../pipeline/lab.ts';
import { serveRepositories } from '../pipeline/repositories.ts';
import { type Call, type Calls, type EnteredFiles, listEntered, subtractCalls } from './entered.ts';
import { ProgramCounter } from './program-counter.ts';
import type { Walk } from './walks.ts';

const root = join(import.meta.dirname, '../../..');
const token = 'a token of the walks that is long enough';
/** Lookups and events run behind a status that says Live. */
const settleMs = 3_000;

async function measureHosting(): Promise<EnteredFiles> {
  const counter = new ProgramCounter();
  try {
    const calls = [...(await measureCluster(counter)), ...(await measurePipeline(counter))];
    return listEntered(new Map(calls.map((call) => [call.key, call])).values());
  } finally {
    counter.stop();
  }
}

/** One submission after another has warmed up both programs, without what they do when nothing is submitted. */
async function measureCluster(counter: ProgramCounter): Promise<Call[]> {
  const world = await startWorld();
  const [gateway, registry] = [await startGateway(60), await startRegistry()];
  const operatorPort = await findFreePort();
  const { process: operator } = world.startOperator({
    ...counter.variables,
    MOORAGE_INTERNAL_PORT: String(operatorPort),
    MOORAGE_METERING_TOKEN: token,
    MOORAGE_PROBE_URL: `https://127.0.0.1:${gateway.port}`,
    MOORAGE_REGISTRY_PROXY: `127.0.0.1:${registry.port}`,
    MOORAGE_REGISTRY_PRUNE: 'true',
    MOORAGE_APPS_USAGE_INTERVAL: '0s',
    MOORAGE_BUILDS_SPACE_INTERVAL: '0s',
  });
  const apiPort = await findFreePort();
  const internalPort = await findFreePort();
  const api = program({
    file: 'api/main.ts',
    internalPort,
    variables: {
      ...(await readChartVariables()),
      ...counter.variables,
      KUBECONFIG: world.api.kubeconfig,
      MOORAGE_PORT: String(apiPort),
      MOORAGE_APPS_PORT: String(await findFreePort()),
      MOORAGE_CALLER_SALT: 'a salt of the walks that is long enough',
      MOORAGE_TRUSTED_PROXIES: '127.0.0.0/8',
      MOORAGE_GIT_ALLOWED_HOSTS: world.git.host,
      MOORAGE_GIT_INSECURE_HOSTS: world.git.host,
      MOORAGE_METERING_TOKEN: token,
      MOORAGE_OPERATOR_URL: `http://127.0.0.1:${operatorPort}`,
    },
  });
  try {
    await api.start();
    const pids = [api.pid(), operator.pid ?? 0];
    const take = (): Promise<Calls[]> => Promise.all(pids.map((pid) => counter.take(pid)));
    await goLive(world, await submit(apiPort, world.git.url));
    await take();
    const idle: Calls[][] = [];
    for (let window = 0; window < 2; window += 1) {
      await sleep(2 * settleMs);
      idle.push(await take());
    }
    await goLive(world, await submit(apiPort, world.git.otherOwnerUrl));
    const active = await take();
    return active.flatMap((calls, index) =>
      subtractCalls(
        calls,
        idle.flatMap((window) => window[index] ?? []),
      ),
    );
  } finally {
    await api.stop();
    await gateway.stop();
    await registry.stop();
    await world.stop();
  }
}

/** What the chart gives the API as plain text. */
async function readChartVariables(): Promise<Record<string, string>> {
  const objects = await render({ ...required, appsDomain: 'apps.localhost', baseDomain: 'moorage.localhost' });
  return Object.fromEntries(
    Object.entries(readEnvironment(objects, 'api')).flatMap(([name, value]) =>
      value === undefined || value === '' ? [] : [[name, value]],
    ),
  );
}

async function submit(port: number, repo: string): Promise<string> {
  const response = await fetch(`http://127.0.0.1:${port}/api/submit`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'x-forwarded-for': '203.0.113.7' },
    body: JSON.stringify({ repo }),
  });
  const text = await response.text();
  if (!response.ok) throw new Error(`the API answered with ${response.status}: ${text}`);
  return z.looseObject({ slug: z.string() }).parse(JSON.parse(text)).slug;
}

/** Does what a cluster does for an app that builds and starts. */
async function goLive(world: World, app: string): Promise<void> {
  const { client } = world;
  const commit = await waitFor('the commit', async () => (await world.app(app))?.status?.source?.commit);
  const job = await awaitStartedJob(world, app);
  const image = formatImage(job, 'a');
  await startJob(client, job);
  for (const [stage, statuses] of [
    ['Clone', [createRunningContainer('clone')]],
    ['Review', [createCloneEnd(commit), createRunningContainer('review')]],
    ['Build', [createCloneEnd(commit), createReviewEnd(), createRunningContainer('build')]],
  ] as const) {
    await writePod(client, job, [...statuses]);
    await waitFor(stage, async () => (await world.app(app))?.status?.pipeline?.stage === stage);
  }
  await writePod(client, job, [createCloneEnd(commit), createReviewEnd(), createBuildEnd(image)], 'Succeeded');
  await completeJob(client, job);
  await rollOut(client, await awaitDeployment(world, app, image));
  await acceptRoute(world, app);
  await waitFor('the app to be live', async () => (await world.app(app))?.status?.phase === 'Live');
  await sleep(settleMs);
}

/** Modules of each stage, which it loads when it starts. What loading them calls is not the walk. */
const stageModules = { clone: 'clone/clone.ts', review: 'review/review.ts', build: 'build/build.ts' } as const;
const sharedModules = ['handover.ts', 'message.ts'];

async function measurePipeline(counter: ProgramCounter): Promise<Call[]> {
  const repositories = await serveRepositories();
  const programs = mkdtempSync(join(tmpdir(), 'moorage-walks-'));
  const repository = await repositories.add('sample', { fixture: 'dockerfile-app' });
  const pod = await makePod(repository);
  try {
    await runExclusively(async () => {
      await buildPart('gitleaks');
    });
    standInForBuildKit(programs);
    const path = [programs, getBinariesFolder('gitleaks'), process.env['PATH'] ?? ''].join(delimiter);
    const variables = { ...counter.variables, PATH: path };
    const measured: Call[] = [];
    for (const stage of containers) {
      const calls = await counter.during(async () => {
        const { code, log } = await pod.stage(stage, variables);
        if (code !== 0) throw new Error(`${stage} ended with ${code}: ${log}`);
      });
      const loading = await counter.during(() => {
        loadModules([...sharedModules, stageModules[stage]], variables);
        return Promise.resolve();
      });
      measured.push(...subtractCalls(calls, [loading]));
    }
    return measured;
  } finally {
    await pod.remove();
    await repositories.stop();
    rmSync(programs, { recursive: true });
  }
}

/** A daemon that does nothing, and a client that says what it would have pushed. */
function standInForBuildKit(folder: string): void {
  const metadata = JSON.stringify({ 'containerimage.digest': `sha256:${'a'.repeat(64)}` });
  const scripts = {
    buildkitd: 'exec sleep 1000',
    buildctl: `while [ $# -gt 0 ]; do [ "$1" = --metadata-file ] && echo '${metadata}' > "$2"; shift; done; exit 0`,
  };
  for (const [name, script] of Object.entries(scripts)) {
    writeFileSync(join(folder, name), `#!/bin/sh\n${script}\n`);
    chmodSync(join(folder, name), 0o755);
  }
}

function loadModules(modules: readonly string[], variables: Readonly<Record<string, string>>): void {
  const urls = modules.map((name) => join(root, 'controller/pipeline', name));
  const script = `for (const url of ${JSON.stringify(urls)}) await import(url);`;
  const { status, stderr } = spawnSync(process.execPath, ['--input-type=module', '--eval', script], {
    env: variables,
    encoding: 'utf8',
  });
  if (status !== 0) throw new Error(stderr);
}

export const hostingWalks: readonly Walk[] = [
  {
    name: 'submit',
    title: 'POST /api/submit of a repository with a Dockerfile, from the request to a live app',
    target: 35,
    measure: measureHosting,
  },
];
