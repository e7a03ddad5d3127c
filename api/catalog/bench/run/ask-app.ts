// Sends a prompt to a hosted app over HTTP, reads the answer, and classifies why a run failed.
import { setTimeout as sleep } from 'node:timers/promises';
import { Agent, type Dispatcher, request } from 'undici';
import type { Grade } from '../grade.ts';
import type { ErrorClass } from '../statements.ts';
import type { Step } from '../tasks/task.ts';
import { jsonOf, render, renderText, valueAt, type Values } from '../tasks/template.ts';

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

export interface Classification {
  readonly passed: boolean;
  readonly score: number;
  readonly error: ErrorClass | undefined;
  readonly detail: string | undefined;
}

/** Classes by how the last model call ended, as api/models/v1 notes it. */
const ofCall: Readonly<Record<string, ErrorClass>> = {
  unreachable: 'outage',
  busy: 'outage',
  credit: 'outage',
  key: 'outage',
  model: 'outage',
  broken: 'outage',
  interrupted: 'outage',
  unsent: 'outage',
  limit: 'limit',
  request: 'refused',
  malformed: 'malformed',
  timeout: 'timeout',
  cancelled: 'timeout',
};

/** What statuses of a gateway mean as long as the app has called no model: it did not wake up or was not there. */
const asleep: ReadonlySet<number> = new Set([502, 503, 504]);

/** `calls`: how the model calls of the run ended, the first one first; null for one in progress. */
export function classify(reply: AppReply, grade: Grade | undefined, calls: readonly (string | null)[]): Classification {
  if (grade !== undefined && grade.error === undefined)
    return { passed: true, score: 1, error: undefined, detail: undefined };
  const called = ofLastCall(calls);
  if (called !== undefined) return failed(called.error, `the last model call ended with: ${called.outcome}`);
  if (reply.failure !== undefined) return failed(ofReply(reply.failure, calls.length), reply.failure.detail);
  return notPassed(grade);
}

function ofLastCall(calls: readonly (string | null)[]): { outcome: string; error: ErrorClass } | undefined {
  const outcome = calls.at(-1) ?? '';
  const error = Object.hasOwn(ofCall, outcome) ? ofCall[outcome] : undefined;
  return error === undefined ? undefined : { outcome, error };
}

/** An answer that did not pass. */
function notPassed({ score, error = 'grader', detail }: Grade = { score: 0 }): Classification {
  return { passed: false, score, error, detail: detail?.slice(0, 500) };
}

function ofReply(failure: AppFailure, calls: number): ErrorClass {
  switch (failure.kind) {
    case 'timeout':
      return 'timeout';
    case 'unreadable':
      return 'malformed';
    case 'unreachable':
      return calls === 0 ? 'wake' : 'app-5xx';
    case 'status':
      return ofStatus(failure.status, calls);
  }
}

function ofStatus(status: number, calls: number): ErrorClass {
  if (status === 429) return 'limit';
  if (status < 500) return 'refused';
  return calls === 0 && asleep.has(status) ? 'wake' : 'app-5xx';
}

function failed(error: ErrorClass, detail: string): Classification {
  return { passed: false, score: 0, error, detail: detail.slice(0, 500) };
}

/** Where an app answers. */
export interface AppAddress {
  /** Like https://chat.moorage.localhost, without a slash at the end. */
  readonly url: string;
  /** The app's own host name, where the URL is that of a gateway. */
  readonly host?: string | undefined;
}

/** Connections of one visitor. Who may vouch for the name of a gateway inside the cluster is not what is measured. */
export function connect({ host }: AppAddress): Agent {
  return new Agent(host === undefined ? {} : { connect: { servername: host, rejectUnauthorized: false } });
}

/** The header that names the app at a gateway. */
export function hostHeader({ url, host }: AppAddress): { host?: string } {
  if (host === undefined) return {};
  const { port } = new URL(url);
  return { host: port === '' ? host : `${host}:${port}` };
}

/** What went wrong below HTTP, in the words of the system. */
export function unreachable(error: unknown): string {
  const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error;
  return `the app could not be reached: ${cause instanceof Error ? cause.message : String(cause)}`;
}
