// The Gotenberg client: renders a document or a page, and converts failures to problems.
import { Problem } from '../../../lib/problem.ts';
import { callService, type ServiceAnswer, type ServiceUrls } from './backing-services.ts';
import { fetchFailed, urlRefused, toolBusy, toolFailed, toolLimit, unprocessable } from '../problems.ts';

export interface GotenbergRequest {
  /** Path below /forms, such as /chromium/convert/html. */
  readonly form: string;
  readonly fields: Readonly<Record<string, string | number | boolean | undefined>>;
  readonly file?: { readonly name: string; readonly bytes: Uint8Array };
  readonly maxBytes: number;
  readonly signal: AbortSignal;
}

/**
 * Longer than Gotenberg's own request timeout (charts/moorage/files/gotenberg-flags), so that its error message arrives.
 */
const timeoutMs = 55_000;

/** @throws Problem (service-off, tool-failed, service-timeout, tool-limit, tool-busy, fetch-failed, url-refused, unprocessable) */
export async function callGotenberg(
  urls: ServiceUrls,
  { form, fields, file, maxBytes, signal }: GotenbergRequest,
): Promise<Uint8Array> {
  const { body, contentType } = await encodeForm(fields, file);
  const answer = await callService(urls, 'gotenberg', {
    path: `/forms${form}`,
    method: 'POST',
    headers: { 'content-type': contentType },
    body,
    maxBytes,
    timeoutMs,
    signal,
  });
  if (answer.status !== 200) throw toProblem(answer, answer.status === 503 && (await isCrowded(urls, form, signal)));
  if (answer.bytes.length === 0) throw new Problem(toolFailed, 'Gotenberg returned an empty file.');
  return answer.bytes;
}

async function encodeForm(
  fields: GotenbergRequest['fields'],
  file: GotenbergRequest['file'],
): Promise<{ body: Uint8Array; contentType: string }> {
  const form = new FormData();
  for (const [name, value] of Object.entries(fields)) if (value !== undefined) form.append(name, String(value));
  if (file !== undefined) form.append('files', new Blob([new Uint8Array(file.bytes)]), file.name);
  // Response encodes the form as multipart.
  const written = new Response(form);
  return { body: await written.bytes(), contentType: written.headers.get('content-type') ?? '' };
}

/** Gotenberg's error messages, where one status has several meanings. */
const badRequests: readonly [pattern: RegExp, problem: (said: RegExpExecArray) => Problem][] = [
  [
    /net::ERR_TUNNEL_CONNECTION_FAILED/,
    () =>
      new Problem(
        fetchFailed,
        'The page could not be loaded: its server is unreachable, or its address is not public.',
      ),
  ],
  [
    /net::(ERR_[A-Z_]+)/,
    ([, code = '']) => new Problem(fetchFailed, `The page could not be loaded: Chromium reported ${code}.`),
  ],
  [/password-protected/, () => new Problem(unprocessable, 'The document is password-protected.')],
  [/page ranges/, () => new Problem(unprocessable, 'The page ranges in pages do not exist in the document.')],
  [
    /^LibreOffice/,
    () =>
      new Problem(
        unprocessable,
        'LibreOffice cannot convert the document: it is damaged or uses an unsupported feature.',
      ),
  ],
  [/failed to print/, () => new Problem(unprocessable, 'The page is too large to print.')],
];

/** Queue size (in progress and waiting) at which an engine has no capacity for another request. */
const crowds: Readonly<Record<string, number>> = { chromium: 6, libreoffice: 2 };

/**
 * Whether the engine of this form is busy with other requests. Gotenberg answers 503 when a request times out, whether it was
 * running or waiting.
 */
async function isCrowded(urls: ServiceUrls, form: string, signal: AbortSignal): Promise<boolean> {
  const [, engine = ''] = form.split('/');
  const metrics = await callService(urls, 'gotenberg', {
    path: '/prometheus/metrics',
    method: 'GET',
    maxBytes: 1_000_000,
    timeoutMs: 2_000,
    signal,
  }).catch(() => undefined);
  const text = new TextDecoder().decode(metrics?.bytes);
  const size = new RegExp(`^\\w*${engine}_requests_queue_size(?:\\{[^}]*\\})? (\\S+)$`, 'm').exec(text)?.[1];
  return Number(size ?? 0) >= (crowds[engine] ?? Number.POSITIVE_INFINITY);
}

function toProblem({ status, bytes }: ServiceAnswer, isOverloaded: boolean): Problem {
  const words = new TextDecoder().decode(bytes.subarray(0, 2_000));
  if (status === 400 || /^LibreOffice failed/.test(words)) return toBadRequestProblem(words);
  const problem = {
    403: () => new Problem(urlRefused, 'The address is not public.'),
    409: () => new Problem(fetchFailed, `The page returned status ${/\b\d{3}\b/.exec(words)?.[0] ?? '4xx or 5xx'}.`),
    413: () => new Problem(toolLimit, 'The document is larger than Gotenberg accepts.'),
    429: () =>
      new Problem(toolBusy, 'Gotenberg has reached its limit of queued requests. Try again in 5 seconds.', {
        headers: { 'retry-after': '5' },
      }),
    503: () =>
      isOverloaded
        ? new Problem(toolBusy, 'Gotenberg did not get to the request in time. Try again in 10 seconds.', {
            headers: { 'retry-after': '10' },
          })
        : new Problem(
            toolLimit,
            'The conversion took longer than one call may take. Possible causes: an endless script, a dialog, or a very long document.',
          ),
  }[status];
  return problem?.() ?? new Problem(toolFailed, `Gotenberg returned status ${status}.`);
}

function toBadRequestProblem(words: string): Problem {
  for (const [pattern, problem] of badRequests) {
    const said = pattern.exec(words);
    if (said !== null) return problem(said);
  }
  return new Problem(toolFailed, 'Gotenberg rejected the request.', { cause: new Error(words) });
}
