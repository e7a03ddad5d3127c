// What the activator answers itself: a problem for programs, a page that waits for people.
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { AppView } from '../apps/view.ts';
import type { Refusal, RefusalKind } from '../hold/refusal.ts';
import { Problem, problemBody, problemMediaType } from '../../lib/problem.ts';
import { activatorProblems as problems } from '../../crds/reports.ts';
import { waitingPage } from './page.ts';

/** Marks a response that the app has not made. */
export const waitingHeader = 'moorage-activator';

const types = {
  unknown: problems.unknownApp,
  stopped: problems.appStopped,
  failed: problems.appNotStarting,
  waking: problems.appWaking,
  full: problems.appWaking,
  limited: problems.tooManyHeld,
  asleep: problems.appWaking,
  broken: problems.appBroken,
} as const satisfies Record<RefusalKind, unknown>;

/** Answers with a problem (RFC 9457). */
export function sendProblem(
  request: IncomingMessage,
  response: ServerResponse,
  refusal: Refusal,
  { baseUrl, id, preference }: { readonly baseUrl: string; readonly id: string; readonly preference?: string },
): void {
  const problem = new Problem(types[refusal.kind], refusal.message);
  const path = (request.url ?? '/').split('?')[0] ?? '/';
  const body = `${JSON.stringify(problemBody(problem, baseUrl, path, id))}\n`;
  response.writeHead(problem.type.status, {
    ...ofOurs(refusal.kind),
    'content-type': problemMediaType,
    'content-length': Buffer.byteLength(body),
    ...(refusal.retryAfter === undefined ? {} : { 'retry-after': String(refusal.retryAfter) }),
    ...(preference === undefined ? {} : { 'preference-applied': preference }),
  });
  response.end(request.method === 'HEAD' ? undefined : body);
}

/** Answers with the page that waits. */
export function sendPage(request: IncomingMessage, response: ServerResponse, app: AppView, retryAfter: number): void {
  const { body, headers } = waitingPage(app.view.title, request.headers['accept-language'], retryAfter);
  response.writeHead(503, {
    ...ofOurs('waking'),
    ...headers,
    'content-length': Buffer.byteLength(body),
    'retry-after': String(retryAfter),
  });
  response.end(body);
}

/** A body that was not read would be taken for the next request. */
function ofOurs(kind: RefusalKind): Record<string, string> {
  return { 'cache-control': 'no-store', [waitingHeader]: kind, connection: 'close' };
}
