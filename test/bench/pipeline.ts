// `npm run bench:pipeline`: submit to live, with a bare buildctl and a bare pod start of the same image for comparison,
// and the second push of planned apps, in one run on the running cluster.
import { rounds } from './pipeline-options.ts';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { z } from 'zod';
import { pipelineInput } from '../../controller/pipeline/contract.ts';
import { appsNamespace, buildsNamespace, deleteApps, waitFor, runKubectl, readApp } from '../support/cluster.ts';
import { rawBuildPod, rawDeployment } from './raw-pods.ts';
import {
  median,
  plannedApps,
  push,
  seconds,
  submitToLive,
  submitToWord,
  withRepository,
  type Submission,
} from './submission.ts';

const pipelineJob = z.looseObject({
  items: z
    .array(
      z.looseObject({
        spec: z.looseObject({
          template: z.looseObject({
            spec: z.looseObject({
              containers: z.array(
                z.looseObject({
                  image: z.string(),
                  env: z.array(z.looseObject({ name: z.string(), value: z.string().default('') })),
                }),
              ),
            }),
          }),
        }),
      }),
    )
    .min(1),
});

interface Round {
  /** Seconds from POST /api/submit to the first 200 through the gateway. */
  readonly live: number;
  /** Seconds that buildctl takes with its daemon running, push included. */
  readonly build: number;
  /** Seconds from creating a Deployment of that image, already on the node, to its readiness. */
  readonly start: number;
}

async function measure(round: number): Promise<Round> {
  const name = `bench-${process.pid}-${round}`;
  return withRepository(name, async (submission) => {
    try {
      const live = await submitToLive(submission);
      const image = (await readApp(name)).status?.built?.image;
      if (image === undefined) throw new Error(`${name} has no image`);
      return { live, build: await rawBuild(submission), start: await rawStart(name, image) };
    } finally {
      await deleteApps(name);
    }
  });
}

/**
 * The same build in a pod of the same image and limits, with nothing of ours around it; buildctl is timed in the pod.
 */
async function rawBuild({ name, repo, commit }: Submission): Promise<number> {
  const jobs = pipelineJob.parse(
    JSON.parse(await runKubectl('get', 'jobs', '-n', buildsNamespace, '-l', `moorage.dev/app=${name}`, '-o', 'json')),
  );
  const containers = jobs.items[0]?.spec.template.spec.containers ?? [];
  const { image = '' } = containers.at(-1) ?? {};
  const readVariable = (wanted: string): string =>
    containers.flatMap(({ env }) => env).find(({ name: each }) => each === wanted)?.value ?? '';
  const { push } = pipelineInput.parse(JSON.parse(readVariable('MOORAGE_PIPELINE')));
  const pod = `${name}-raw`;
  await create(
    rawBuildPod({
      ...{ name: pod, namespace: buildsNamespace, image, repo, commit, push },
      tokens: { git: readVariable('MOORAGE_GIT_TOKEN'), push: readVariable('MOORAGE_PUSH_TOKEN') },
    }),
  );
  try {
    return await waitFor(
      'the bare build',
      async () => {
        const figure = /^buildctl (\d+)$/m.exec(await runKubectl('logs', pod, '-n', buildsNamespace))?.[1];
        return figure === undefined ? undefined : Number(figure) / 1000;
      },
      300,
    );
  } finally {
    await runKubectl('delete', 'pod', pod, '-n', buildsNamespace, '--wait=false');
  }
}

const runtimeClassPath = 'jsonpath={.spec.template.spec.runtimeClassName}';

async function rawStart(name: string, image: string): Promise<number> {
  const deployment = `${name}-raw`;
  const started = performance.now();
  const own = await runKubectl('get', 'deploy', name, '-n', appsNamespace, '-o', runtimeClassPath);
  const runtimeClass = own === '' ? undefined : own;
  await create(rawDeployment({ name: deployment, namespace: appsNamespace, image, port: 8000, runtimeClass }));
  try {
    await runKubectl(
      'wait',
      '--for=condition=Available',
      `deploy/${deployment}`,
      '-n',
      appsNamespace,
      '--timeout=120s',
    );
    return seconds(started);
  } finally {
    await runKubectl('delete', 'deploy', deployment, '-n', appsNamespace, '--wait=false');
  }
}

async function create(manifest: object): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'moorage-bench-'));
  const file = join(folder, 'manifest.json');
  writeFileSync(file, JSON.stringify(manifest));
  try {
    await runKubectl('create', '-f', file);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Seconds from the submission until the page shows what was pushed. */
interface Pushes {
  readonly first: number;
  /** Of a commit that changes one line of one source file. */
  readonly second: number;
}

async function measurePushes(language: string, round: number): Promise<Pushes> {
  const name = `bench-${language}-${process.pid}-${round}`;
  const folder = mkdtempSync(join(tmpdir(), 'moorage-bench-'));
  const write = plannedApps[language];
  if (write === undefined) throw new Error(`there is no ${language} app to measure`);
  try {
    const first = await submitToWord(await push(name, folder, write('one')), 'one');
    return { first, second: await submitToWord(await push(name, folder, write('two')), 'two') };
  } finally {
    await deleteApps(name);
    rmSync(folder, { recursive: true, force: true });
  }
}

function formatRow<Measured>(label: string, all: readonly Measured[], pick: (each: Measured) => number): string {
  const values = all.map(pick);
  return `${label.padEnd(34)} ${[Math.min(...values), median(values), Math.max(...values)].map((value) => value.toFixed(2).padStart(7)).join(' ')}`;
}

function report(all: readonly Round[]): string {
  return [
    `${'seconds'.padEnd(34)}     min  median     max`,
    formatRow('submit to first 200', all, ({ live }) => live),
    formatRow('bare buildctl, daemon running', all, ({ build }) => build),
    formatRow('bare pod start, image present', all, ({ start }) => start),
    formatRow('over their sum', all, ({ live, build, start }) => live - build - start),
    formatRow('ratio to their sum', all, ({ live, build, start }) => live / (build + start)),
  ].join('\n');
}

const done: Round[] = [];
for (let round = 1; round <= rounds; round += 1) {
  const figures = await measure(round);
  process.stdout.write(
    `round ${round}: live ${figures.live.toFixed(2)}, buildctl ${figures.build.toFixed(2)}, pod ${figures.start.toFixed(2)}\n`,
  );
  done.push(figures);
}
process.stdout.write(`${report(done)}\n`);
for (const language of Object.keys(plannedApps)) {
  const pushes: Pushes[] = [];
  for (let round = 1; round <= rounds; round += 1) pushes.push(await measurePushes(language, round));
  process.stdout.write(`${formatRow(`${language}: first push`, pushes, ({ first }) => first)}\n`);
  process.stdout.write(`${formatRow(`${language}: second push`, pushes, ({ second }) => second)}\n`);
}
process.exit(0);
