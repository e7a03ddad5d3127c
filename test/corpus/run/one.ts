// One repository on the cluster: submitted unchanged, followed to its end, looked at, and removed.
import { rm } from 'node:fs/promises';
import { createHash } from 'node:crypto';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { createApiClient, type Reason } from '../../../cli/submit/api-client.ts';
import { Fault, type Installation } from '../../../cli/submit/installation.ts';
import { submit } from '../../../cli/submit/submit.ts';
import { toDnsLabel } from '../../../crds/names.ts';
import { addLicense, checkOut, hideDockerfiles, NotBroughtIn, type Checkout } from '../checkout.ts';
import type { RunEntry } from '../corpus.ts';
import { shorten } from '../table.ts';
import { deleteApp, readFacts, readWarning } from './app.ts';
import { networkEvidence } from './evidence.ts';
import { fairness } from './fairness.ts';
import { visit } from './page.ts';
import { createRecorder, type Recording } from './recorder.ts';
import type { Result } from './results.ts';
import { judgePage, type PageVerdict } from './verdict.ts';

export interface OneOptions {
  readonly installation: Installation;
  readonly mirror: string | undefined;
  readonly hide: boolean;
  /** Adds a licence file to repositories without one. */
  readonly addLicense: boolean;
  /** Where screenshots go. */
  readonly pictures: string;
  readonly version: string;
}

/** Above the longest build and rollout, with some wait for room. */
const maximumMs = 60 * 60_000;
const secondLookMs = 10_000;
/** The operator looks for up to 30 s, and again a minute after a look that found faults. */
const warningMs = 100_000;

type Found = Omit<Result, 'repo' | 'commit' | 'version' | 'stack' | 'at'>;

export async function runOne(entry: RunEntry, options: OneOptions): Promise<Result> {
  const { repo, commit, stack } = entry;
  const found = await bringIn(entry, options);
  const hidden = options.hide ? { hidden: true } : {};
  return { repo, commit, version: options.version, stack, ...hidden, ...found, at: new Date().toISOString() };
}

async function bringIn(entry: RunEntry, options: OneOptions): Promise<Found> {
  let source: Checkout;
  try {
    source = await checkOut(entry, options.mirror);
  } catch (error) {
    if (error instanceof NotBroughtIn) return { verdict: 'not brought in', why: error.message };
    throw error;
  }
  try {
    const { missing } = source;
    // git cannot push a commit of which files are missing: what is there is submitted as a folder.
    if (missing.length > 0) await rm(join(source.folder, '.git'), { recursive: true, force: true });
    if (options.hide) await hideDockerfiles(source.folder);
    const licensed = options.addLicense && (await addLicense(source.folder)) ? { licensed: true } : {};
    const found = { ...(await submitted(entry, source.folder, options)), ...licensed };
    return missing.length > 0 ? { ...found, missing: missing.slice(0, 20) } : found;
  } finally {
    await source.remove();
  }
}

async function submitted(entry: RunEntry, folder: string, options: OneOptions): Promise<Found> {
  const name = appName(entry.repo);
  const api = createApiClient(options.installation);
  const recording = createRecorder();
  try {
    const { installation } = options;
    // A run that was stopped may have left it there, and what is already live tells no time.
    await deleteApp(name);
    const ended = submit({ what: folder, name }, { installation, api, output: recording.output });
    // When it comes too late, nobody waits for it.
    ended.catch(() => undefined);
    const inTime = await Promise.race([ended.then(() => true), delay(maximumMs, false, { ref: false })]);
    if (!inTime)
      return { verdict: 'not submitted', why: `no outcome within ${maximumMs / 60_000} minutes`, log: tail(recording) };
    return await awaitOutcome(entry, recording, options);
  } catch (error) {
    if (!(error instanceof Fault)) throw error;
    return { verdict: 'not submitted', why: error.message, log: tail(recording) };
  } finally {
    await api.close();
    const slug = recording.outcome()?.status.slug;
    await deleteApp(slug ?? name);
  }
}

async function awaitOutcome(entry: RunEntry, recording: Recording, options: OneOptions): Promise<Found> {
  const outcome = recording.outcome();
  if (outcome === undefined) return { verdict: 'not submitted', why: 'no outcome', log: tail(recording) };
  const { status, reason, seconds } = outcome;
  const facts = await readFacts(status.slug);
  if (reason !== undefined || status.status !== 'live')
    return {
      ...rejected(entry, recording, { reason, message: status.message, hidden: options.hide }),
      ...facts,
      seconds,
    };
  const { elsewhere, ...seen } = await lookAt(entry, status.url, options.pictures);
  const { verdict, why } = seen.verdict === 'falsely live' ? await warned(status.slug, seen) : seen;
  const log = verdict === 'live and works' ? {} : { log: tail(recording) };
  return { verdict, why, elsewhere: [...elsewhere], ...facts, seconds, url: status.url, ...log };
}

/** A broken page of which the status says so is live, and not falsely: its author and its visitors are warned. */
async function warned(slug: string, seen: Pick<Found, 'verdict' | 'why'>): Promise<Pick<Found, 'verdict' | 'why'>> {
  const warning = await readWarning(slug, warningMs);
  if (warning === undefined) return seen;
  return { verdict: 'live with a warning', why: `${seen.why}; the status warns: the app ${warning}` };
}

function rejected(
  entry: RunEntry,
  recording: Recording,
  { reason, message, hidden }: { reason: Reason | undefined; message: string; hidden: boolean },
): Found {
  const words = reason === undefined ? message : `${reason.rule}: ${reason.message} ${reason.fix}`;
  const lines = [...recording.log, ...(reason?.log ?? '').split('\n')];
  const text = `${words}\n${lines.join('\n')}`;
  const { fair, why } = fairness(entry, { text, evidence: networkEvidence(lines), hidden });
  return {
    verdict: 'rejected',
    fair,
    why: [words, why].filter((each) => each !== '').join(' — '),
    log: [...tail(recording), ...(reason?.log ?? '').split('\n').slice(-30)],
  };
}

async function lookAt(
  { repo, interaction }: RunEntry,
  address: string,
  pictures: string,
): Promise<{ verdict: Found['verdict']; why: string; elsewhere: readonly string[] }> {
  const look = async (): Promise<PageVerdict> => {
    const page = await visit(new URL(address), { screenshot: join(pictures, `${repo.replace('/', '+')}.png`) });
    return judgePage(page, interaction && (await interact(interaction, address)));
  };
  const first = await look();
  // An app may still be loading what it answers with: a model, its packages.
  const { verdict, faults, elsewhere } =
    first.verdict === 'live and works' ? first : await delay(secondLookMs).then(look);
  return { verdict, why: faults.join('; '), elsewhere };
}

async function interact(
  { path, contains }: NonNullable<RunEntry['interaction']>,
  address: string,
): Promise<{ works: boolean; what: string }> {
  const { text, status } = await visit(new URL(path, address), { settleMs: 2_000 });
  return { works: text.includes(contains), what: `${path} does not say "${contains}" (${status})` };
}

/** Two repositories of one name are two apps. */
export function appName(repo: string): string {
  const short = createHash('sha256').update(repo).digest('hex').slice(0, 5);
  return `${toDnsLabel(repo.split('/')[1] ?? repo).slice(0, 40)}-${short}`;
}

function tail({ log }: Recording): string[] {
  return log.slice(-60).map((line) => shorten(line, 500));
}
