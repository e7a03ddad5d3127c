// One first visit of an app: its page, then a question that every model can answer, as somebody who was never there.
import { request } from 'undici';
import { grade } from '../grade/grade.ts';
import type { Visit } from '../store/visits.ts';
import type { BenchmarkManifest } from '../tasks/task.ts';
import { askApp } from './ask-app.ts';
import { type AppAddress, connect, hostHeader, unreachable } from './reach.ts';

/** Who waits longer has gone. */
export const visitLimitMs = 60_000;
export const question = 'What is 2 + 2? Answer with the number alone.';
const grader = { kind: 'number', value: 4, tolerance: 0 } as const;

/** Never throws: what goes wrong is a result. */
export async function visitApp(
  address: AppAddress,
  { app, parameters, transport }: Pick<BenchmarkManifest, 'app' | 'parameters' | 'transport'>,
): Promise<Omit<Visit, 'release'>> {
  const since = performance.now();
  const result = (detail: string | undefined): Omit<Visit, 'release'> => ({
    app,
    steps: 1 + transport.length,
    latencyMs: Math.round(performance.now() - since),
    detail: detail?.slice(0, 500),
  });
  const missing = await openPage(address);
  if (missing !== undefined) return result(missing);
  const reply = await askApp({
    ...address,
    steps: transport,
    values: { ...parameters, model: '', marker: 'visit', prompt: question, run: crypto.randomUUID() },
    timeoutMs: Math.max(1, Math.round(visitLimitMs - (performance.now() - since))),
  });
  if (reply.answer === undefined) return result(reply.failure.detail);
  const { error, detail = 'it is wrong' } = await grade({ answer: reply.answer, grader, values: {} }, noScript);
  return result(error === undefined ? undefined : `the answer is of no use: ${detail}`);
}

/** @returns why there is no page, where there is none */
async function openPage(address: AppAddress): Promise<string | undefined> {
  const dispatcher = connect(address);
  try {
    const response = await request(`${address.url}/`, {
      headers: { accept: 'text/html', 'user-agent': 'moorage-bench', ...hostHeader(address) },
      signal: AbortSignal.timeout(visitLimitMs),
      dispatcher,
    });
    await response.body.dump();
    const { statusCode, headers } = response;
    if (statusCode < 200 || statusCode > 399) return `the page answered ${statusCode}`;
    return statusCode < 300 && !String(headers['content-type']).includes('html') ? 'the page is not HTML' : undefined;
  } catch (error) {
    return unreachable(error);
  } finally {
    void dispatcher.destroy();
  }
}

const noScript = (): never => {
  throw new Error('no script grades a visit');
};
