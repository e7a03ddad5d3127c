// Runs a campaign: one run at a time, each recorded before the next one starts.
import { randomBytes } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { grade, type RunScript } from '../grade.ts';
import type { StartedRun } from '../statements.ts';
import type { BenchWriter, CampaignPlan, PlannedRun, Release, RunResult } from '../store.ts';
import { type BenchmarkManifest, createInstance, isHeldBack, type Seeds } from '../tasks/task.ts';
import { hashSha256 } from '../tasks/template.ts';
import { askApp, classify } from './ask-app.ts';

export interface RunnerOptions {
  readonly writer: BenchWriter;
  readonly choice: CampaignChoice;
  /** The app's own URL, without a slash at the end. */
  readonly url: string;
  /** The app's own host name, where `url` is that of a gateway. */
  readonly host?: string;
  /** What the app runs now. */
  readonly release: () => Promise<Release>;
  readonly runScript: RunScript;
  /** Called once at the start, and after each run. */
  readonly report: (event: RunnerEvent) => void;
  /** Aborted to stop after the run in progress. */
  readonly signal: AbortSignal;
  /** How long it waits at the end for costs that the router has not reported yet; default 60 s. */
  readonly costsMs?: number;
}

export type RunnerEvent =
  | { readonly kind: 'begun'; readonly campaign: PreparedCampaign }
  | { readonly kind: 'run'; readonly run: StartedRun; readonly result: RunResult };

/**
 * `finished`: no run is left. `stopped`: the signal came. `limit`: a limit of this installation refuses model calls, so
 * that further runs would show nothing. `taken`: another process has the campaign. `busy`: another one uses the app.
 */
export type CampaignEnd = 'finished' | 'stopped' | 'limit' | 'taken' | 'busy';

/** Beyond the time limit of a run: for its model calls to be cut off and its result to be written. */
const slackMs = 60_000;

export async function runCampaign(
  options: RunnerOptions,
): Promise<{ id: string; end: CampaignEnd; costsPending: number }> {
  const { writer, choice, report } = options;
  const campaign = await prepareCampaign(choice, writer);
  report({ kind: 'begun', campaign });
  const end = await runAll(options, campaign);
  return { id: campaign.id, end, costsPending: await awaitCosts(options, campaign.id) };
}

async function runAll(options: RunnerOptions, { id, seeds }: PreparedCampaign): Promise<CampaignEnd> {
  const { writer, choice, release, report, signal } = options;
  while (!signal.aborted) {
    const run = await writer.startNext(id, await release(), choice.manifest.timeout_seconds * 1_000 + slackMs);
    if (run === undefined) return 'finished';
    if (typeof run === 'string') return run;
    const result = await makeRun(options, run, seeds);
    if (!(await writer.finish(run.id, result))) return 'taken';
    report({ kind: 'run', run, result });
    if (result.error === 'limit') return 'limit';
  }
  return 'stopped';
}

async function makeRun(
  { writer, choice, url, host, runScript }: RunnerOptions,
  run: StartedRun,
  seeds: Seeds,
): Promise<RunResult> {
  const { manifest } = choice;
  const task = manifest.tasks.find(({ slug }) => slug === run.task);
  if (task === undefined) throw new Error(`the task ${run.task} is not in manifests/bench any more`);
  const instance = createInstance(task, run.number, seeds);
  const reply = await askApp({
    url,
    host,
    steps: task.steps,
    values: { ...manifest.parameters, model: run.model, marker: run.marker, prompt: instance.prompt, run: run.id },
    timeoutMs: manifest.timeout_seconds * 1_000,
  });
  const calls = await writer.endCalls(run.id);
  const { answer } = reply;
  const graded =
    answer === undefined
      ? undefined
      : await grade({ answer, grader: instance.grader, values: instance.values }, runScript);
  return {
    ...classify(reply, graded, calls),
    latencyMs: reply.latencyMs,
    outputHash: answer === undefined ? undefined : hashSha256(answer),
  };
}

/** @returns how many costs are still not known; the API continues to look for them */
async function awaitCosts({ writer, signal, costsMs = 60_000 }: RunnerOptions, campaign: string): Promise<number> {
  const until = performance.now() + costsMs;
  for (;;) {
    const pending = await writer.settleCosts(campaign);
    if (pending === 0 || signal.aborted || performance.now() > until) return pending;
    await sleep(1_000);
  }
}

export interface CampaignChoice {
  readonly manifest: BenchmarkManifest;
  readonly models: readonly string[];
  /** Runs of each model on each task. */
  readonly runs: number;
  /** Undefined: that of the campaign which has not finished, else a new one. */
  readonly seed: string | undefined;
}

export interface PreparedCampaign {
  readonly id: string;
  readonly seeds: Seeds;
  /** Whether it was begun before. */
  readonly resumed: boolean;
  /** Runs that were in progress when the process before ended. */
  readonly interrupted: number;
}

/** Continues the unfinished campaign with the same choices, or registers a new one with all its runs. */
export async function prepareCampaign(choice: CampaignChoice, writer: BenchWriter): Promise<PreparedCampaign> {
  const fixed = selectIdentity(choice);
  const begun = await writer.findUnfinished({ ...fixed, seed: choice.seed });
  if (begun !== undefined) {
    const interrupted = await writer.takeOver(begun.id);
    return { id: begun.id, seeds: { seed: begun.seed, heldBack: begun.heldBackSeed }, resumed: true, interrupted };
  }
  const seeds = { seed: choice.seed ?? randomBytes(16).toString('hex'), heldBack: randomBytes(32).toString('hex') };
  const plan: CampaignPlan = {
    ...fixed,
    seed: seeds.seed,
    heldBackSeed: seeds.heldBack,
    heldBackHash: hashSha256(seeds.heldBack),
    parameters: choice.manifest.parameters,
    attribution: choice.manifest.attribution,
  };
  return { id: await writer.register(plan, planRuns(choice, seeds)), seeds, resumed: false, interrupted: 0 };
}

/** What makes two campaigns the same one; the order of the models is none of it. */
function selectIdentity({
  manifest,
  models,
  runs,
}: CampaignChoice): Pick<CampaignPlan, 'app' | 'models' | 'tasks' | 'runs'> {
  const tasks = manifest.tasks.map(({ slug, hash, born }) => ({ task: slug, hash, born }));
  return { app: manifest.app, models: [...new Set(models)].sort(), tasks, runs };
}

/** Each model on each task, on the same instances. */
export function planRuns({ manifest, models, runs }: CampaignChoice, seeds: Seeds): PlannedRun[] {
  const numbers = Array.from({ length: runs }, (_none, index) => index + 1);
  return manifest.tasks.flatMap((task) =>
    numbers.flatMap((number) => {
      const { hash } = createInstance(task, number, seeds);
      return [...new Set(models)].map((model) => ({
        model,
        task: task.slug,
        number,
        held_back: isHeldBack(number),
        task_hash: task.hash,
        instance: hash,
      }));
    }),
  );
}
