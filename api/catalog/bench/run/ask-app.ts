// Sends a prompt to a hosted app over HTTP, reads the answer, and classifies why a run failed.
import { setTimeout as sleep } from 'node:timers/promises';
import { Agent, type Dispatcher, request } from 'undici';
import type { Grade } from '../grade.ts';
import type { ErrorClass } from '../statements.ts';
import type { Step } from '../tasks/task.ts';
import { parseJson, render, renderText, readPointer, type Values } from '../tasks/template.ts';

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

/** Maximum size of a response. */
const maxBytes = 4 * 1024 * 1024;

class AppFault extends Error {
  readonly failure: AppFailure;
  constructor(failure: AppFailure) {
    super(failure.detail);
    this.failure = failure;
  }
}

/** Never throws: every failure is a result. */
export async function askApp({ url, host, steps, values, timeoutMs }: AppQuestion): Promise<AppReply> {
  const since = performance.now();
  const measureMs = (): number => Math.round(performance.now() - since);
  const signal = AbortSignal.timeout(timeoutMs);
  const dispatcher = createAgent({ url, host });
  let known = values;
  try {
    for (const step of steps)
      known = { ...known, ...(await performStep(step, { url, host, dispatcher, values: known, signal })) };
  } catch (error) {
    return { latencyMs: measureMs(), failure: toFailure(error, signal, timeoutMs) };
  } finally {
    void dispatcher.destroy();
  }
  const { answer } = known;
  return typeof answer === 'string' && answer.trim() !== ''
    ? { latencyMs: measureMs(), answer }
    : { latencyMs: measureMs(), failure: { kind: 'unreadable', detail: 'the response of the app has no answer' } };
}

/** Sends one step, repeatedly if it has `repeat`. @returns the captured values */
async function performStep(step: Step, request: StepRequest): Promise<Values> {
  const { repeat, capture } = step;
  let captured: Values = {};
  for (let times = 1; ; times += 1) {
    const document = await sendStep(step, request);
    captured = { ...captured, ...captureValues(document, capture) };
    if (repeat === undefined || readPointer(document, repeat.until) === repeat.equals) return captured;
    if (times === repeat.times)
      throw new AppFault({ kind: 'timeout', detail: `the app was not done after ${times} requests` });
    await sleep(repeat.wait_ms, undefined, { signal: request.signal });
  }
}

function captureValues(document: unknown, capture: Step['capture']): Values {
  const parts = Object.entries(capture).map(([name, pointer]) => [name, readPointer(document, pointer)] as const);
  return Object.fromEntries(parts.filter(([, value]) => value !== undefined && value !== null));
}

async function sendStep(
  { method, path, headers, body }: Step,
  { url, host, dispatcher, values, signal }: StepRequest,
): Promise<unknown> {
  const response = await request(`${url}${renderText(path, values)}`, {
    method,
    headers: {
      accept: 'application/json',
      'user-agent': 'moorage-bench',
      ...createHostHeader({ url, host }),
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      ...Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, renderText(value, values)])),
    },
    body: body === undefined ? null : JSON.stringify(render(body, values)),
    // Only the time limit of all steps together applies.
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
  const document = parseJson(text);
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

function toFailure(error: unknown, signal: AbortSignal, timeoutMs: number): AppFailure {
  if (error instanceof AppFault) return error.failure;
  if (signal.aborted) return { kind: 'timeout', detail: `no whole answer within ${timeoutMs / 1_000} s` };
  return { kind: 'unreachable', detail: describeConnectionError(error) };
}

export interface Classification {
  readonly passed: boolean;
  readonly score: number;
  readonly error: ErrorClass | undefined;
  readonly detail: string | undefined;
}

/** Classes by how the last model call ended, as api/models/v1 notes it. */
const classOfCall: Readonly<Record<string, ErrorClass>> = {
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
const gatewayStatuses: ReadonlySet<number> = new Set([502, 503, 504]);

/** `calls`: how the model calls of the run ended, the first one first; null for one in progress. */
export function classify(reply: AppReply, grade: Grade | undefined, calls: readonly (string | null)[]): Classification {
  if (grade !== undefined && grade.error === undefined)
    return { passed: true, score: 1, error: undefined, detail: undefined };
  const called = classifyLastCall(calls);
  if (called !== undefined) return createFailedRun(called.error, `the last model call ended with: ${called.outcome}`);
  if (reply.failure !== undefined)
    return createFailedRun(classifyFailure(reply.failure, calls.length), reply.failure.detail);
  return classifyGrade(grade);
}

function classifyLastCall(calls: readonly (string | null)[]): { outcome: string; error: ErrorClass } | undefined {
  const outcome = calls.at(-1) ?? '';
  const error = Object.hasOwn(classOfCall, outcome) ? classOfCall[outcome] : undefined;
  return error === undefined ? undefined : { outcome, error };
}

/** An answer that did not pass. */
function classifyGrade({ score, error = 'grader', detail }: Grade = { score: 0 }): Classification {
  return { passed: false, score, error, detail: detail?.slice(0, 500) };
}

function classifyFailure(failure: AppFailure, calls: number): ErrorClass {
  switch (failure.kind) {
    case 'timeout':
      return 'timeout';
    case 'unreadable':
      return 'malformed';
    case 'unreachable':
      return calls === 0 ? 'wake' : 'app-5xx';
    case 'status':
      return classifyStatus(failure.status, calls);
  }
}

function classifyStatus(status: number, calls: number): ErrorClass {
  if (status === 429) return 'limit';
  if (status < 500) return 'refused';
  return calls === 0 && gatewayStatuses.has(status) ? 'wake' : 'app-5xx';
}

function createFailedRun(error: ErrorClass, detail: string): Classification {
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
export function createAgent({ host }: AppAddress): Agent {
  return new Agent(host === undefined ? {} : { connect: { servername: host, rejectUnauthorized: false } });
}

/** The header that names the app at a gateway. */
export function createHostHeader({ url, host }: AppAddress): { host?: string } {
  if (host === undefined) return {};
  const { port } = new URL(url);
  return { host: port === '' ? host : `${host}:${port}` };
}

/** Describes a failure below HTTP by the message of the system. */
export function describeConnectionError(error: unknown): string {
  const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error;
  return `the app could not be reached: ${cause instanceof Error ? cause.message : String(cause)}`;
}
