// One first visit of an app: its page, then a question that every model can answer, as somebody who was never there.
import { request } from 'undici';
import { grade } from '../grade.ts';
import type { Database } from '../../../billing/index.ts';
import { isMeasured, type Release, type Visit, visitLimitMs, writeVisit } from '../store.ts';
import type { BenchmarkManifest } from '../tasks/task.ts';
import { type AppAddress, askApp, createAgent, createHostHeader, describeConnectionError } from './ask-app.ts';

const question = 'What is 2 + 2? Answer with the number alone.';
const grader = { kind: 'number', value: 4, tolerance: 0 } as const;

export interface VisitsOptions {
  readonly database: Database;
  readonly address: AppAddress;
  readonly manifest: BenchmarkManifest;
  readonly count: number;
  /** What the app runs now. */
  readonly release: () => Promise<Release>;
  readonly report: (visit: Visit) => void;
  readonly signal: AbortSignal;
}

/** One after the other, each written before the next. @returns false when another benchmark of the app is in progress */
export async function makeVisits(options: VisitsOptions): Promise<boolean> {
  const { database, address, manifest, count, release, report, signal } = options;
  for (let made = 0; made < count && !signal.aborted; made += 1) {
    if (await isMeasured(database, manifest.app)) return false;
    const visit = { ...(await visitApp(address, manifest)), release: await release() };
    await writeVisit(database, visit);
    report(visit);
  }
  return true;
}

/** Never throws: every failure is a result. */
export async function visitApp(
  address: AppAddress,
  { app, parameters, transport }: Pick<BenchmarkManifest, 'app' | 'parameters' | 'transport'>,
): Promise<Omit<Visit, 'release'>> {
  const since = performance.now();
  const createVisit = (detail: string | undefined): Omit<Visit, 'release'> => ({
    app,
    steps: 1 + transport.length,
    latencyMs: Math.round(performance.now() - since),
    detail: detail?.slice(0, 500),
  });
  const missing = await openPage(address);
  if (missing !== undefined) return createVisit(missing);
  const reply = await askApp({
    ...address,
    steps: transport,
    values: { ...parameters, model: '', marker: 'visit', prompt: question, run: crypto.randomUUID() },
    timeoutMs: Math.max(1, Math.round(visitLimitMs - (performance.now() - since))),
  });
  if (reply.answer === undefined) return createVisit(reply.failure.detail);
  const { error, detail = 'it is wrong' } = await grade({ answer: reply.answer, grader, values: {} }, refuseScript);
  return createVisit(error === undefined ? undefined : `the answer is of no use: ${detail}`);
}

/** @returns why there is no page, where there is none */
async function openPage(address: AppAddress): Promise<string | undefined> {
  const dispatcher = createAgent(address);
  try {
    const response = await request(`${address.url}/`, {
      headers: { accept: 'text/html', 'user-agent': 'moorage-bench', ...createHostHeader(address) },
      signal: AbortSignal.timeout(visitLimitMs),
      dispatcher,
    });
    await response.body.dump();
    const { statusCode, headers } = response;
    if (statusCode < 200 || statusCode > 399) return `the page answered ${statusCode}`;
    return statusCode < 300 && !String(headers['content-type']).includes('html') ? 'the page is not HTML' : undefined;
  } catch (error) {
    return describeConnectionError(error);
  } finally {
    void dispatcher.destroy();
  }
}

const refuseScript = (): never => {
  throw new Error('no script grades a visit');
};
