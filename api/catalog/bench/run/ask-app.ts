// Sends a prompt to a hosted app over HTTP, step by step as its transport says, and takes the answer out.
import { setTimeout as sleep } from 'node:timers/promises';
import { type Dispatcher, request } from 'undici';
import { jsonOf, valueAt } from '../tasks/pointer.ts';
import type { Step } from '../tasks/task.ts';
import { render, renderText, type Values } from '../tasks/template.ts';
import { type AppAddress, connect, hostHeader, unreachable } from './reach.ts';

export interface AppQuestion extends AppAddress {
  readonly steps: readonly Step[];
  readonly values: Values;
  /** For all steps together. */
  readonly timeoutMs: number;
}

/** Why there is no answer. */
export type AppFailure =
  | { readonly kind: 'timeout' | 'unreachable' | 'unreadable'; readonly detail: string }
  | { readonly kind: 'status'; readonly status: number; readonly detail: string };

export type AppReply = { readonly latencyMs: number } & (
  | { readonly answer: string; readonly failure?: undefined }
  | { readonly failure: AppFailure; readonly answer?: undefined }
);

interface StepRequest extends Pick<AppQuestion, 'url' | 'host' | 'values'> {
  readonly dispatcher: Dispatcher;
  readonly signal: AbortSignal;
}

/** Of a response only so much is read. */
const maxBytes = 4 * 1024 * 1024;

class AppFault extends Error {
  readonly failure: AppFailure;
  constructor(failure: AppFailure) {
    super(failure.detail);
    this.failure = failure;
  }
}

/** Never throws: what goes wrong is a result. */
export async function askApp({ url, host, steps, values, timeoutMs }: AppQuestion): Promise<AppReply> {
  const since = performance.now();
  const took = (): number => Math.round(performance.now() - since);
  const signal = AbortSignal.timeout(timeoutMs);
  const dispatcher = connect({ url, host });
  let known = values;
  try {
    for (const step of steps)
      known = { ...known, ...(await perform(step, { url, host, dispatcher, values: known, signal })) };
  } catch (error) {
    return { latencyMs: took(), failure: failureOf(error, signal, timeoutMs) };
  } finally {
    void dispatcher.destroy();
  }
  const { answer } = known;
  return typeof answer === 'string' && answer.trim() !== ''
    ? { latencyMs: took(), answer }
    : { latencyMs: took(), failure: { kind: 'unreadable', detail: 'the response of the app has no answer' } };
}

/** One step, again until it is done where it says so. @returns what it captures */
async function perform(step: Step, request: StepRequest): Promise<Values> {
  const { repeat, capture } = step;
  let captured: Values = {};
  for (let times = 1; ; times += 1) {
    const document = await send(step, request);
    captured = { ...captured, ...partsOf(document, capture) };
    if (repeat === undefined || valueAt(document, repeat.until) === repeat.equals) return captured;
    if (times === repeat.times)
      throw new AppFault({ kind: 'timeout', detail: `the app was not done after ${times} requests` });
    await sleep(repeat.wait_ms, undefined, { signal: request.signal });
  }
}

function partsOf(document: unknown, capture: Step['capture']): Values {
  const parts = Object.entries(capture).map(([name, pointer]) => [name, valueAt(document, pointer)] as const);
  return Object.fromEntries(parts.filter(([, value]) => value !== undefined && value !== null));
}

async function send(
  { method, path, headers, body }: Step,
  { url, host, dispatcher, values, signal }: StepRequest,
): Promise<unknown> {
  const response = await request(`${url}${renderText(path, values)}`, {
    method,
    headers: {
      accept: 'application/json',
      'user-agent': 'moorage-bench',
      ...hostHeader({ url, host }),
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      ...Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, renderText(value, values)])),
    },
    body: body === undefined ? null : JSON.stringify(render(body, values)),
    // The time of all steps together is what counts.
    headersTimeout: 0,
    bodyTimeout: 0,
    signal,
    dispatcher,
  });
  const text = await readText(response.body);
  if (response.statusCode < 200 || response.statusCode > 299)
    throw new AppFault({
      kind: 'status',
      status: response.statusCode,
      detail: `the app answered ${response.statusCode}`,
    });
  const document = jsonOf(text);
  if (document === undefined) throw new AppFault({ kind: 'unreadable', detail: 'the response of the app is not JSON' });
  return document;
}

async function readText(body: AsyncIterable<Uint8Array>): Promise<string> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of body) {
    size += chunk.byteLength;
    if (size > maxBytes)
      throw new AppFault({ kind: 'unreadable', detail: `the response is larger than ${maxBytes} bytes` });
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString('utf8');
}

function failureOf(error: unknown, signal: AbortSignal, timeoutMs: number): AppFailure {
  if (error instanceof AppFault) return error.failure;
  if (signal.aborted) return { kind: 'timeout', detail: `no whole answer within ${timeoutMs / 1_000} s` };
  return { kind: 'unreachable', detail: unreachable(error) };
}
