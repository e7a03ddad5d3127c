// Prints how a campaign goes, a line for each run.
import type { Writable } from 'node:stream';
import type { Visit } from '../store/visits.ts';
import type { CampaignEnd, RunnerEvent } from './runner.ts';

/** What is said at the end. */
export const endings: Readonly<Record<CampaignEnd, string>> = {
  finished: 'All runs have finished.',
  stopped: 'Stopped. Start it again with the same arguments to go on.',
  limit:
    'A limit refuses further model calls: the daily budget of the app or the daily limit of the platform. Start it again with the same arguments once it has reset, at 00:00 UTC.',
  taken: 'Another process has taken this campaign over.',
  busy: 'Another benchmark uses this app. Try again when it has finished.',
};

export function reportVisitTo(output: Writable): (visit: Visit) => void {
  return ({ steps, latencyMs, detail }) => {
    output.write(`first visit: ${detail ?? 'a useful answer'} (${steps} requests, ${latencyMs} ms)\n`);
  };
}

export function reportTo(output: Writable): (event: RunnerEvent) => void {
  return (event) => {
    output.write(`${event.kind === 'begun' ? beginning(event) : line(event)}\n`);
  };
}

function beginning({ campaign: { id, seeds, resumed, interrupted } }: Extract<RunnerEvent, { kind: 'begun' }>): string {
  const before = resumed ? `goes on; ${interrupted} interrupted` : 'registered';
  return `campaign ${id} ${before}, seed ${seeds.seed}`;
}

function line({ run, result }: Extract<RunnerEvent, { kind: 'run' }>): string {
  const how = result.passed ? 'passed' : `${result.error ?? 'failed'}: ${result.detail ?? ''}`;
  return `${run.model} ${run.task} ${run.number}: ${how} (${Math.round(result.latencyMs)} ms)`;
}
