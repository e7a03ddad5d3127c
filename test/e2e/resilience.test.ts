// Any process may die at any line: the build goes on, as one Job, with one image.
import assert from 'node:assert/strict';
import { beforeAll, onTestFinished, test } from 'vitest';
import { z } from 'zod';
import { prepareControlPlane } from '../../localnode/node/control-plane/control-plane.ts';
import { leases } from '../../lib/kubernetes/index.ts';
import { ensureProcess, stopProcess } from '../../localnode/node/daemons/processes.ts';
import { buildControlPlaneOptions, processFolders } from '../../localnode/node/settings.ts';
import {
  appUrl,
  buildsNamespace,
  connect,
  crash,
  deleteApps,
  listPods,
  waitFor,
  get,
  runKubectl,
  readApp,
  submit,
  systemNamespace,
  runWithFiles,
} from '../support/cluster.ts';

const operator = 'moorage-operator';
const operatorScript = 'controller/main.ts';
const phases = ['Queued', 'Cloning', 'Reviewing', 'Building', 'Deploying', 'Routing'] as const;

/** Slow enough in its build to be interrupted there. */
const files = (seconds: number): Record<string, string> => ({
  Dockerfile: `FROM python:3.13-slim-trixie\nRUN sleep ${seconds}\nRUN echo served > index.html\nEXPOSE 8000\nCMD ["python", "-m", "http.server", "8000"]\n`,
});

const jobList = z.looseObject({ items: z.array(z.looseObject({ metadata: z.looseObject({ name: z.string() }) })) });

async function listJobs(app: string): Promise<readonly string[]> {
  const jobs = jobList.parse(
    JSON.parse(await runKubectl('get', 'jobs', '-n', buildsNamespace, '-l', `moorage.dev/app=${app}`, '-o', 'json')),
  );
  return jobs.items.map((job) => job.metadata.name);
}

async function assertOnePipeline(app: string): Promise<void> {
  const read = await readApp(app);
  assert.equal((await listJobs(app)).length, 1, 'one Job');
  assert.equal(read.status?.history?.length, 1, 'one pipeline in the history');
  assert.equal(read.status.history[0]?.result, 'Succeeded');
  assert.equal(read.status.built?.image, read.status.served?.image);
  assert.match((await get(appUrl(app))).body, /served/);
}

async function restartApiServer(): Promise<void> {
  const { apiServer } = await prepareControlPlane(buildControlPlaneOptions());
  await stopProcess(processFolders, apiServer.name, 0);
  await ensureProcess(processFolders, apiServer);
}

const ofOperator = ['-n', systemNamespace, '-l', 'app.kubernetes.io/component=operator'];

/** For what crashed before, the kubelet waits up to minutes; new pods start without a wait. */
async function replaceCrashedOperators(): Promise<void> {
  const pods = await listPods('app.kubernetes.io/component=operator', systemNamespace);
  const crashes = pods.flatMap(({ status }) => status?.containerStatuses ?? []).map(({ restartCount }) => restartCount);
  if (crashes.every((count) => count === 0)) return;
  await runKubectl('delete', 'pods', ...ofOperator);
  await runKubectl('rollout', 'status', `deploy/${operator}`, '-n', systemNamespace, '--timeout=120s');
}

beforeAll(replaceCrashedOperators);

const podList = z.looseObject({
  items: z.array(z.looseObject({ metadata: z.looseObject({ name: z.string(), uid: z.string() }) })),
});

test('one of two operator replicas leads, and the other takes over when it is killed', async (t) => {
  const client = await connect();
  const holder = async (): Promise<string> =>
    (await client.get(leases, { name: operator, namespace: systemNamespace }))?.spec?.holderIdentity ?? '';
  const pods = podList.parse(
    JSON.parse(await runKubectl('get', 'pods', ...ofOperator, '--field-selector=status.phase=Running', '-o', 'json')),
  );
  assert.equal(pods.items.length, 2);
  const [leader, pod] = await waitFor('one of the pods leads', async () => {
    const name = await holder();
    const found = pods.items.find(({ metadata }) => name.startsWith(metadata.name));
    return found === undefined ? undefined : ([name, found] as const);
  });
  const started = performance.now();
  assert.equal(crash(operatorScript, pod.metadata.uid), 1);
  const next = await waitFor('another leads', async () => {
    const name = await holder();
    return name === leader || name === '' ? undefined : name;
  });
  await t.annotate(
    `taken over after ${((performance.now() - started) / 1000).toFixed(1)} s by ${next.startsWith(pod.metadata.name) ? 'the restarted process' : 'the other replica'}`,
  );
});

test('the API server can be killed in the middle of a build', async () => {
  const app = 'e2e-api-server';
  onTestFinished(() => deleteApps(app));
  await runWithFiles(app, files(8), async (folder) => {
    const submitted = submit(folder);
    await waitFor('building', async () => ((await readApp(app)).status?.phase === 'Building' ? true : undefined), 120);
    await restartApiServer();
    const ended = await submitted;
    assert.equal(ended.exitCode, 0, ended.all);
  });
  await assertOnePipeline(app);
});

test('the operator survives kill -9 in each phase', async (t) => {
  const app = 'e2e-killed';
  onTestFinished(() => deleteApps(app));
  await replaceCrashedOperators();
  const struck: string[] = [];
  // A lease outlives its holder by 10 s; the build must outlast that.
  await runWithFiles(app, files(25), async (folder) => {
    const submitted = submit(folder);
    const strike = async (): Promise<true | undefined> => {
      const phase = await readApp(app).then(
        (read) => read.status?.phase,
        () => undefined,
      );
      if (phase !== undefined && phase !== 'Live' && !struck.includes(phase) && crash(operatorScript) > 0) {
        struck.push(phase);
        // The first time, the kubelet starts the containers again. Later it would wait longer each time, up to minutes.
        if (struck.length > 1) await runKubectl('delete', 'pods', ...ofOperator, '--wait=false');
      }
      return phase === 'Live' ? true : undefined;
    };
    await waitFor('live in spite of it', strike, 400);
    const ended = await submitted;
    assert.equal(ended.exitCode, 0, ended.all);
  });
  await t.annotate(`killed while ${struck.join(', ')}`);
  assert.ok(
    struck.includes('Building') && struck.length >= 3,
    `struck in ${struck.join(', ')} of ${phases.join(', ')}`,
  );
  await assertOnePipeline(app);
});
