// The endpoints by which a repository is submitted and followed.
import { z } from 'zod';
import { Problem } from '../../lib/problem.ts';
import { parseRepository, RepositoryError, type GitHosts, type Repository } from '../../lib/repository.ts';
import { defineEndpoint, type Endpoint } from '../http/endpoint.ts';
import {
  beingRemoved,
  clusterUnavailable,
  notSubmitted,
  platformFull,
  tooManyStreams,
  tooManySubmissions,
} from '../http/problems.ts';
import { invalid } from '../http/validation.ts';
import { findApp } from './find-app.ts';
import { follow } from './log/follow.ts';
import type { AppIndex } from '../apps/hosted-apps.ts';
import type { SubmitMetrics } from './metrics.ts';
import { byteStream, eventStream, eventWriter, plainText, textWriter } from './log/log-stream.ts';
import type { OpenLog } from './log/pod-log.ts';
import { statusView, viewStatus, type Places, type StatusView } from '../apps/status-view.ts';
import type { Submission, Submitted } from './submit-app.ts';

/** What the endpoints work with. */
export interface SubmitServices {
  readonly apps: AppIndex;
  readonly hosts: GitHosts;
  readonly baseUrl: string;
  readonly submit: (submission: Submission) => Promise<Submitted>;
  readonly openLog: OpenLog;
  /** Most log streams at once. */
  readonly logStreams: number;
  /** Silence after which a stream sends a keepalive; default 15 000 ms. */
  readonly keepaliveMs?: number;
  /** Wait before a log that is not there yet is asked for again; default 500 ms. */
  readonly logRetryMs?: number;
  readonly metrics: SubmitMetrics;
}

/**
 * One line as it is shown: no controls, no line breaks of any kind, nothing that turns the direction of writing.
 * Without classes like \p{Cc}: the pattern stands in the OpenAPI document, and readers in other languages do not know
 * them.
 */
const oneLine = new RegExp(
  String.raw`^[^\u0000-\u001f\u007f-\u009f\u2028\u2029\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff]*$`,
);
const contactForm = /^([^\s@]+@[^\s@]+\.[^\s@]+|https?:\/\/\S+)$/;

// The length comes first and ends the check: the form of an address takes time that grows with the square of its
// length.
const submission = z
  .strictObject({
    repo: z.string().min(1).max(512).describe('Source repository as owner/name or a full URL'),
    contact: z
      .string()
      .max(200, { abort: true })
      .regex(oneLine, 'holds control characters')
      .regex(contactForm, 'is neither an e-mail address nor a URL')
      .optional()
      .describe('Contact for launch and revenue notifications: an e-mail address or a URL'),
    note: z
      .string()
      .max(500, { abort: true })
      .regex(oneLine, 'is more than one line, or holds characters that nobody sees')
      .optional()
      .describe('One-line description of the app, up to 500 characters'),
  })
  .describe('{"repo": "owner/name"}, and if you like "contact" and "note"');

const segment = z.string().min(1).max(100);
const path = z.strictObject({
  owner: segment.describe('Owner of the repository'),
  name: segment.describe('Name of the repository'),
});
const which = z.strictObject({
  host: z
    .string()
    .max(255)
    .optional()
    .describe('Git host, where owner/name exists on several; default: the first that is allowed'),
});

/** Makes the endpoints. */
export function submitEndpoints(services: SubmitServices): Endpoint[] {
  return [submitEndpoint(services), statusEndpoint(services), logEndpoint(services)];
}

function submitEndpoint(services: SubmitServices): Endpoint {
  const { metrics } = services;
  return defineEndpoint({
    method: 'POST',
    path: '/api/submit',
    operation: 'submitRepository',
    tag: 'submit',
    summary: 'Submit a repository for hosting',
    description:
      'The repository is reviewed, made into an image, and deployed on its own subdomain over HTTPS. Submitting is free. ' +
      'The same repository submitted again is the same app: the answer says where it stands, and the repository is asked for a new commit at once. ' +
      'Where it was rejected, it is tried again by that, with the same commit if there is no newer one; at most once a minute. ' +
      'Sending an Idempotency-Key does no harm and is not needed.',
    body: submission,
    output: statusView.extend({
      created: z.boolean().describe('true: a new app; false: the repository was submitted before.'),
      polled: z.boolean().describe('Whether the repository is asked for a new commit now.'),
      retried: z.boolean().describe('true: it was rejected, and a new pipeline is started for its newest commit.'),
      retry_at: z
        .string()
        .optional()
        .describe('RFC 3339: it was rejected and tried again just before; from then on it can be tried again.'),
    }),
    outputDescription: 'The repository is in the pipeline, or was already; the outcome is polled at status_url.',
    problems: [tooManySubmissions, platformFull, beingRemoved, clusterUnavailable],
    async handler({ body }, context) {
      const repository = readRepository(body.repo, services.hosts);
      try {
        const submitted = await services.submit({
          repository,
          contact: body.contact,
          note: body.note,
          caller: context.caller().hash,
        });
        const { app, created, polled, retried, retryAt } = submitted;
        metrics.submissions.inc({ result: created ? 'created' : 'known' });
        context.log.info({ app: app.metadata.name, created, polled, retried }, 'submitted');
        const view = viewStatus(app, places(services));
        return {
          ...view,
          message: submittedMessage(submitted, view),
          created,
          polled,
          retried,
          retry_at: retryAt?.toISOString(),
        };
      } catch (error) {
        if (error instanceof Problem) metrics.submissions.inc({ result: error.type.slug });
        throw error;
      }
    },
  });
}

function submittedMessage({ created, retried, retryAt }: Submitted, { message, status_url }: StatusView): string {
  if (created) return `Submitted. ${message} Follow it at ${status_url}.`;
  if (retried)
    return `Submitted again, and tried again: a new pipeline is started for its newest commit. Follow it at ${status_url}.`;
  return `Submitted before. ${message}${retryAt === undefined ? '' : ` It was tried again just before; submit it from ${retryAt.toISOString()} on to try the same commit once more.`}`;
}

function statusEndpoint(services: SubmitServices): Endpoint {
  return defineEndpoint({
    method: 'GET',
    path: '/api/submit-status/{owner}/{name}',
    operation: 'getSubmitStatus',
    tag: 'submit',
    summary: 'How a submitted repository stands',
    description:
      'live: it answers at url. in_pipeline: the stage, since when, and the place in the queue. rejected: the reason, with rule, file, line and what to change.',
    params: path,
    query: which,
    output: statusView,
    outputDescription: 'How it stands.',
    problems: [notSubmitted],
    handler({ params, query }) {
      return Promise.resolve(
        viewStatus(findApp(services.apps, services.hosts, { ...params, ...query }), places(services)),
      );
    },
  });
}

function logEndpoint(services: SubmitServices): Endpoint {
  const { apps, hosts, openLog, logStreams, metrics, keepaliveMs = 15_000, logRetryMs: retryMs = 500 } = services;
  let open = 0;
  const openBy = new Map<string, number>();
  // Nobody's streams leave none for the others.
  const mostOfCaller = Math.ceil(logStreams / 4);
  const count = (caller: string, change: 1 | -1): void => {
    open += change;
    metrics.streams.set(open);
    const left = (openBy.get(caller) ?? 0) + change;
    if (left === 0) openBy.delete(caller);
    else openBy.set(caller, left);
  };
  return defineEndpoint({
    method: 'GET',
    path: '/api/submit-status/{owner}/{name}/log',
    operation: 'followSubmitLog',
    tag: 'submit',
    summary: 'Follow the log of the newest build',
    description:
      'Server-sent events: `stage` and `end` (a view of the status), `log` ({"stage", "line"}), `gone` when the log is not kept any more. ' +
      'It attaches to a running build, replays the log of a finished one for as long as that is kept, and resumes after Last-Event-ID. ' +
      'With Accept: text/plain the log comes as text.',
    params: path,
    query: which,
    output: z.string(),
    outputDescription: 'The log, from its beginning to the end of the build.',
    produces: [eventStream, plainText],
    problems: [notSubmitted, tooManyStreams],
    handler({ params, query }, context) {
      const app = findApp(apps, hosts, { ...params, ...query });
      if (open >= logStreams)
        throw new Problem(
          tooManyStreams,
          `${logStreams} logs are being followed; try again in 10 s, or poll the submit-status`,
          { headers: { 'retry-after': '10' } },
        );
      const caller = context.caller().hash;
      if ((openBy.get(caller) ?? 0) >= mostOfCaller)
        throw new Problem(
          tooManyStreams,
          `you are following ${mostOfCaller} logs, which is all that one caller may; close one, or poll the submit-status`,
          { headers: { 'retry-after': '10' } },
        );
      const writer = context.mediaType === plainText ? textWriter(places(services)) : eventWriter(places(services));
      const leaving = new AbortController();
      const events = follow(app.metadata.name, {
        apps,
        openLog,
        retryMs,
        signal: AbortSignal.any([context.signal, leaving.signal]),
        after: context.headers.get('last-event-id') ?? undefined,
      });
      count(caller, 1);
      let counted = true;
      const closed = (): void => {
        if (!counted) return;
        counted = false;
        count(caller, -1);
      };
      context.signal.addEventListener('abort', closed);
      const body = byteStream({
        events,
        writer,
        keepaliveMs,
        abort: () => {
          leaving.abort();
        },
        closed,
      });
      // X-Accel-Buffering: proxies of one widespread kind hold a stream back without it.
      return Promise.resolve(
        new Response(body, {
          headers: { 'content-type': writer.contentType, 'cache-control': 'no-store', 'x-accel-buffering': 'no' },
        }),
      );
    },
  });
}

function places({ baseUrl, hosts }: SubmitServices): Places {
  return { baseUrl, defaultHost: hosts.allowed[0] };
}

function readRepository(text: string, hosts: GitHosts): Repository {
  try {
    return parseRepository(text, hosts);
  } catch (error) {
    if (!(error instanceof RepositoryError)) throw error;
    throw invalid([{ in: 'body', field: 'repo', message: error.message, fix: error.fix }]);
  }
}
