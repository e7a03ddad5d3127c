// Says why a fetch failed, in words that help the caller and tell nothing about the inside.
import { Problem } from '../../../lib/problem.ts';
import { BadEncoding, TooLarge } from './body.ts';
import type { FetchRequest } from './fetcher.ts';
import { Refused } from './guard.ts';
import { fetchFailed, fetchTooLarge, urlRefused } from './problems.ts';

const reasons: readonly [pattern: RegExp, words: string][] = [
  [
    /^(?:ENOTFOUND|ENODATA|ESERVFAIL|EREFUSED|EBADNAME|EAI_|ETIMEOUT|EFORMERR|ENOTIMP|EBADRESP)/,
    'its name cannot be resolved',
  ],
  [/^ECONNREFUSED$/, 'its server does not take connections'],
  [/^(?:EHOSTUNREACH|ENETUNREACH|EADDRNOTAVAIL|ETIMEDOUT|UND_ERR_CONNECT_TIMEOUT)$/, 'its server cannot be reached'],
  [
    /^(?:CERT_|ERR_TLS|ERR_SSL|EPROTO|UNABLE_TO|SELF_SIGNED|DEPTH_ZERO)/,
    'its server does not offer TLS with a valid certificate',
  ],
  [/^UND_ERR_HEADERS_OVERFLOW$/, 'the headers of its answer are too long'],
  [/^(?:HPE_|HTTPParserError|UND_ERR_RES|ERR_INVALID)/, 'its server does not speak HTTP'],
];

/** The problem of a fetch that failed at `at`. */
export function failure(error: unknown, at: string, request: FetchRequest, timedOut: boolean): unknown {
  if (error instanceof Problem) return error;
  if (error instanceof Refused)
    return refusal(
      request.field ?? 'url',
      at === request.url ? error.message : `it redirects to ${origin(at)}, and of that address: ${error.message}`,
    );
  if (request.signal.aborted) return error;
  const where = origin(at);
  if (error instanceof TooLarge)
    return new Problem(
      fetchTooLarge,
      `${where} sent more than ${request.maxBytes} bytes, which is the most that is read here`,
      { members: { limit_bytes: request.maxBytes } },
    );
  return new Problem(fetchFailed, `${where}: ${timedOut ? 'its answer did not come in time' : wordsFor(error)}`, {
    cause: error,
  });
}

/** The problem of a URL that is not fetched. */
export function refusal(field: string, reason: string): Problem {
  return new Problem(urlRefused, `${field}: ${reason}`, {
    errors: [
      {
        in: 'query',
        field,
        message: reason,
        fix: 'send the http or https address of something public, like https://example.org/page',
      },
    ],
  });
}

function wordsFor(error: unknown): string {
  if (error instanceof BadEncoding) return error.message;
  const code = codeOf(error);
  return reasons.find(([pattern]) => pattern.test(code))?.[1] ?? 'the connection broke';
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
