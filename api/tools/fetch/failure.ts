// Turns a failed fetch into a problem that helps the caller and reveals nothing about the inside.
import { Problem } from '../../../lib/problem.ts';
import { BadEncoding, TooLarge } from './body.ts';
import type { FetchRequest } from './fetcher.ts';
import { Refusal } from './guard.ts';
import { fetchFailed, fetchTooLarge, urlRefused } from './problems.ts';

const reasons: readonly [pattern: RegExp, words: string][] = [
  [
    /^(?:ENOTFOUND|ENODATA|ESERVFAIL|EREFUSED|EBADNAME|EAI_|ETIMEOUT|EFORMERR|ENOTIMP|EBADRESP)/,
    'the host name cannot be resolved',
  ],
  [/^ECONNREFUSED$/, 'the server refused the connection'],
  [/^(?:EHOSTUNREACH|ENETUNREACH|EADDRNOTAVAIL|ETIMEDOUT|UND_ERR_CONNECT_TIMEOUT)$/, 'the server cannot be reached'],
  [/^(?:CERT_|ERR_TLS|ERR_SSL|EPROTO|UNABLE_TO|SELF_SIGNED|DEPTH_ZERO)/, 'the server has no valid TLS certificate'],
  [/^UND_ERR_HEADERS_OVERFLOW$/, 'the response headers are too long'],
  [/^(?:HPE_|HTTPParserError|UND_ERR_RES|ERR_INVALID)/, 'the server did not answer with valid HTTP'],
];

/** The problem of a fetch that failed at `at`. */
export function failure(error: unknown, at: string, request: FetchRequest, timedOut: boolean): unknown {
  if (error instanceof Problem) return error;
  if (error instanceof Refusal)
    return refusal(
      request.field ?? 'url',
      at === request.url ? error.message : `redirects to ${origin(at)}, which ${error.message}`,
      request.httpsOnly === true ? 'https' : 'http or https',
    );
  if (request.signal.aborted) return error;
  const where = origin(at);
  if (error instanceof TooLarge)
    return new Problem(fetchTooLarge, `${where} sent more than ${request.maxBytes} bytes, the maximum for this tool.`, {
      members: { limit_bytes: request.maxBytes },
    });
  return new Problem(
    fetchFailed,
    `Fetching from ${where} failed: ${timedOut ? 'the response did not arrive in time' : wordsFor(error)}.`,
    {
      cause: error,
    },
  );
}

/** The problem of a URL that is not fetched. */
export function refusal(field: string, reason: string, schemes = 'http or https'): Problem {
  return new Problem(urlRefused, `The address in ${field} ${reason}.`, {
    errors: [
      {
        in: 'query',
        field,
        message: reason,
        fix: `Send a public ${schemes} URL, such as https://example.org/page.`,
      },
    ],
  });
}

function wordsFor(error: unknown): string {
  if (error instanceof BadEncoding) return error.message;
  const code = codeOf(error);
  return reasons.find(([pattern]) => pattern.test(code))?.[1] ?? 'the connection was interrupted';
}

function origin(address: string): string {
  return URL.canParse(address) ? new URL(address).origin : 'the address';
}

/** The code of an error, of its cause, or of the first of several. */
function codeOf(error: unknown): string {
  if (!(error instanceof Error)) return '';
  if (error instanceof AggregateError && error.errors.length > 0) return codeOf(error.errors[0]);
  if ('code' in error && typeof error.code === 'string') return error.code;
  return error.name === 'HTTPParserError' ? error.name : codeOf(error.cause);
}
