// Reads the command line of `npm run bench:models`, and prints its progress.
import type { Writable } from 'node:stream';
import { readCommandLine, UsageError, parseWholeNumber } from '../../../../lib/command-line.ts';
import type { Visit } from '../store.ts';
import type { CampaignEnd, RunnerEvent } from './runner.ts';

export interface BenchArguments {
  readonly app: string;
  readonly models: readonly string[];
  readonly runs: number;
  /** First visits before the runs. */
  readonly visits: number;
  readonly seed: string | undefined;
  readonly url: string | undefined;
  readonly gateway: string | undefined;
}

export const usage = `usage: npm run bench:models -- --app SLUG --models ID,ID,… --runs N [--visits N] [--seed TEXT] [--url URL] [--gateway URL]

  --app SLUG       the hosted app, which has a folder in manifests/bench
  --models IDS     models from GET /api/models, separated by commas
  --runs N         runs of each model on each task
  --visits N       first visits before that, with the app's own model (default 5)
  --seed TEXT      makes the instances of the tasks (default: a random one)
  --url URL        where the app answers (default: its URL in the cluster)
  --gateway URL    the gateway inside the cluster, through which that URL is reached

All runs are registered before the first one starts. Started again with the same arguments, it continues with what has
not finished. The database, the router and the models are read from the environment, as the API reads them.`;

const options = {
  app: { type: 'string' },
  models: { type: 'string' },
  runs: { type: 'string' },
  visits: { type: 'string', default: '5' },
  seed: { type: 'string' },
  url: { type: 'string' },
  gateway: { type: 'string' },
} as const;

export function readArguments(args?: readonly string[]): BenchArguments {
  return readCommandLine(
    { usage, options },
    ({ values }) => ({
      app: requireOption('--app', values.app),
      models: requireOption('--models', values.models)
        .split(',')
        .map((model) => model.trim())
        .filter((model) => model !== ''),
      runs: parseWholeNumber('--runs', requireOption('--runs', values.runs), { maximum: 1_000 }),
      visits: parseWholeNumber('--visits', values.visits, { minimum: 0, maximum: 1_000 }),
      seed: values.seed,
      url: parseOrigin('--url', values.url),
      gateway: parseOrigin('--gateway', values.gateway),
    }),
    args,
  );
}

function requireOption(option: string, value: string | undefined): string {
  if (value === undefined || value === '') throw new UsageError(`${option} is missing`);
  return value;
}

function parseOrigin(option: string, text: string | undefined): string | undefined {
  if (text === undefined) return undefined;
  if (!URL.canParse(text) || !/^https?:/.test(text))
    throw new UsageError(`${option} must be an http(s) URL, not "${text}"`);
  return text.replace(/\/+$/, '');
}

/** Messages printed at the end of a campaign. */
export const endMessages: Readonly<Record<CampaignEnd, string>> = {
  finished: 'All runs have finished.',
  stopped: 'Stopped. Start it again with the same arguments to continue.',
  limit:
    'A limit refuses further model calls: the daily budget of the app or the daily limit of the platform. Start it again with the same arguments once it has reset, at 00:00 UTC.',
  taken: 'Another process has taken this campaign over.',
  busy: 'Another benchmark uses this app. Try again when it has finished.',
};

export function createVisitReporter(output: Writable): (visit: Visit) => void {
  return ({ steps, latencyMs, detail }) => {
    output.write(`first visit: ${detail ?? 'a useful answer'} (${steps} requests, ${latencyMs} ms)\n`);
  };
}

export function createRunReporter(output: Writable): (event: RunnerEvent) => void {
  return (event) => {
    output.write(`${event.kind === 'begun' ? formatStart(event) : formatRun(event)}\n`);
  };
}

function formatStart({
  campaign: { id, seeds, resumed, interrupted },
}: Extract<RunnerEvent, { kind: 'begun' }>): string {
  const state = resumed ? `continues; ${interrupted} interrupted` : 'registered';
  return `campaign ${id} ${state}, seed ${seeds.seed}`;
}

function formatRun({ run, result }: Extract<RunnerEvent, { kind: 'run' }>): string {
  const verdict = result.passed ? 'passed' : `${result.error ?? 'failed'}: ${result.detail ?? ''}`;
  return `${run.model} ${run.task} ${run.number}: ${verdict} (${Math.round(result.latencyMs)} ms)`;
}
