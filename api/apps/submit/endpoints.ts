// The endpoints that submit a repository, report its status and stream its build log, with and without a cluster.
import { z } from 'zod';
import { Registry, Counter, Gauge } from 'prom-client';
import { Problem } from '../../../lib/problem.ts';
import {
  parseAddress,
  readRepository,
  RepositoryError,
  type GitHosts,
  type Repository,
} from '../../../lib/repository.ts';
import { ledgerUnavailable, ledgerUnconfigured } from '../../billing/index.ts';
import {
  type CallContext,
  clusterUnavailable,
  defineEndpoint,
  eventStreamType,
  type Endpoint,
  createValidationProblem,
  type RequestContext,
} from '../../http/index.ts';
import type { AppsSite } from '../../../crds/names.ts';
import { contact, oneLine } from '../../../crds/app-manifest.ts';
import { ownershipFile, sealContact } from '../../../lib/ownership-file.ts';
import type { SubmittedAddress, Submission, SubmissionResult } from './submit-app.ts';
import { findApp, findNewApp, type AppIndex, type App, createAppIndex, appIndexers } from '../hosted-apps.ts';
import { follow, type OpenLog } from './follow-log.ts';
import { isPrivate, type LinkBase, type Reader, statusView, type StatusView, toStatusView } from '../status-view.ts';
import {
  appKeyRequired,
  appPrivate,
  beingRemoved,
  missingScope,
  noDeployKey,
  notSubmitted,
  platformFull,
  repositoryNotFound,
  repositoryUnreachable,
  tooManyApps,
  tooManyStreams,
  tooManySubmissions,
  tooManyWrongKeys,
  noCluster,
} from '../problems.ts';
import {
  StreamSlots,
  createEventWriter,
  plainTextType,
  createTextWriter,
  streamHeaders,
  streamLog,
  type Writer,
} from './log-stream.ts';
import { createStore } from '../../../lib/kubernetes/index.ts';
import type { LookupAnswer } from '../../../lib/git/lookup.ts';

export interface SubmitServices {
  readonly apps: AppIndex;
  readonly hosts: GitHosts;
  readonly baseUrl: string;
  readonly site: AppsSite;
  readonly submit: (submission: Submission) => Promise<SubmissionResult>;
  /** Seals ownership tokens; without it, none are issued. */
  readonly ownershipSecret?: string | undefined;
  readonly openLog: OpenLog;
  /**
   * Identifies the author of an app, or a holder of a token that may read its source, or its logs.
   * @throws Problem (app-private, missing-scope, …)
   */
  readonly identifyAuthor: (slug: string, context: CallContext, what: 'status' | 'log') => Promise<unknown>;
  /** Asks the operator for a deploy key; absent: there are none. */
  readonly lookUp?: ((repository: Repository, query: { readonly via: 'none' }) => Promise<LookupAnswer>) | undefined;
  /** Why an app's operations cannot be used. Default: nothing is known of them. */
  readonly findOperationsFault?: (slug: string) => string | undefined;
  /** Maximum concurrent log streams. */
  readonly logStreams: number;
  /** Silence after which a stream sends a keepalive; default 15 000 ms. */
  readonly keepaliveMs?: number;
  /** Wait before a log that is not available yet is requested again; default 500 ms. */
  readonly logRetryMs?: number;
  readonly metrics: SubmitMetrics;
}

const submission = z
  .strictObject({
    repo: z
      .string()
      .min(1)
      .max(512)
      .describe(
        'Source repository: owner/name, or an address copied from a browser or from git clone. A branch in the address must be the default branch. Or a package, such as npm:@scope/name or pypi:name, whose newest version is hosted.',
      ),
    contact: contact.optional().describe('Contact for launch and revenue notifications: an e-mail address or a URL'),
    note: z
      .string()
      .max(500, { abort: true })
      .regex(oneLine, 'must not have more than one line or contain invisible characters')
      .optional()
      .describe('One-line description of the app, up to 500 characters'),
  })
  .describe('{"repo": "owner/name"}, optionally with "contact" and "note"');

const ownership = z.object({
  file: z.string().describe('File at the top level of the default branch.'),
  token: z
    .string()
    .describe(
      "A line for that file. It contains this request's contact, encrypted for this repository. After the next build, the app has that contact, and it is verified.",
    ),
});

/** Response of a submission: the status, and what the submission did. */
export const submissionView = statusView.extend({
  created: z.boolean().describe('true for a new app; false if the repository was submitted before.'),
  polled: z.boolean().describe('Whether the repository is checked for a new commit now.'),
  retried: z
    .boolean()
    .describe('true if the app was rejected and a new pipeline run was started for its newest commit.'),
  retry_at: z
    .string()
    .optional()
    .describe('When a rejected app that was retried recently can be retried again, RFC 3339.'),
  ownership: ownership.optional().describe('How to prove that the contact belongs to the author.'),
});

const segment = z.string().min(1).max(100);
const repositoryPath = z.strictObject({
  owner: segment.describe('Owner of the repository'),
  name: segment.describe('Name of the repository'),
});
const hostQuery = z.strictObject({
  host: z
    .string()
    .max(255)
    .optional()
    .describe('Git host, required if owner/name exists on several; default: the first allowed host.'),
});

export function createSubmitEndpoints(services: SubmitServices): Endpoint[] {
  return [
    createSubmitEndpoint(services),
    createStatusEndpoint(services),
    createLogEndpoint(services),
    createDeployKeyEndpoint(services),
  ];
}

function createSubmitEndpoint(services: SubmitServices): Endpoint {
  const { metrics } = services;
  return defineEndpoint({
    method: 'POST',
    path: '/api/submit',
    operation: 'submitRepository',
    tag: 'submit',
    summary: 'Submit a repository for hosting',
    description:
      'The repository is reviewed, built into an image and deployed on its own subdomain over HTTPS. Submission is free. ' +
      'Its git server is checked first: nothing is created for a repository that cannot be read. ' +
      'Submitting the same repository again does not create a second app: the response has its current status, and the repository is checked for a new commit immediately. ' +
      'If the app was rejected, submitting it again also retries it, with the same commit if there is no newer one. Each retry of a commit waits twice as long as the previous one, from a minute to a day; retry_at is the time. ' +
      'A private repository is submitted with any of its addresses: the problem repository-not-found has its deploy key, which you add at the forge with read access before you submit it again. ' +
      'contact and note come from the first submitter: moorage.yaml in the repository overrides both, and ownership in the response explains how an author can provide a contact that is not public. ' +
      'An Idempotency-Key is not needed.',
    body: submission,
    output: submissionView,
    outputDescription: 'The app and its status. Poll status_url for the outcome.',
    problems: [
      repositoryNotFound,
      repositoryUnreachable,
      tooManySubmissions,
      tooManyApps,
      platformFull,
      beingRemoved,
      clusterUnavailable,
    ],
    async handler({ body }, context) {
      const { repository, branch } = readAddress(body.repo, services.hosts);
      try {
        const { hash: caller, network } = context.caller();
        const submitted = await services.submit({
          repository,
          branch,
          contact: body.contact,
          note: body.note,
          caller,
          network,
        });
        const { app, created, polled, retried, retryAt } = submitted;
        metrics.submissions.inc({ result: created ? 'created' : 'known' });
        context.log.info({ app: app.metadata.name, created, polled, retried }, 'submitted');
        const view = toStatusView(app, toLinkBase(services));
        return {
          ...view,
          message: describeSubmission(submitted, view, body.contact),
          created,
          polled,
          retried,
          retry_at: retryAt?.toISOString(),
          ownership: sealOwnership(body.contact, repository, services.ownershipSecret),
        };
      } catch (error) {
        if (error instanceof Problem) metrics.submissions.inc({ result: error.type.slug });
        throw error;
      }
    },
  });
}

function describeSubmission(
  { created, retried, retryAt }: SubmissionResult,
  { message, status_url }: StatusView,
  contact: string | undefined,
): string {
  // Never says whether the contact is already that of the app: guessing a contact must not confirm it.
  const kept = contact === undefined ? '' : ` ${keptContact}`;
  if (created) return `Submitted. ${message} Follow its progress at ${status_url}.`;
  if (retried)
    return `Submitted again. A new pipeline run was started for the newest commit. Follow its progress at ${status_url}.${kept}`;
  return `Already submitted. ${message}${retryAt === undefined ? '' : ` It was retried recently, and each retry of a commit waits longer than the one before. Push a new commit, or submit it again after ${retryAt.toISOString()} to retry the same commit.`}${kept}`;
}

const keptContact = `Submitting does not change the contact of the app. Its author can, with author.contact in moorage.yaml or with ownership.token in ${ownershipFile}.`;

function sealOwnership(
  contact: string | undefined,
  { url }: Repository,
  secret: string | undefined,
): z.input<typeof ownership> | undefined {
  if (contact === undefined || secret === undefined) return undefined;
  return { file: ownershipFile, token: sealContact(contact, url, secret) };
}

function createStatusEndpoint(services: SubmitServices): Endpoint {
  return defineEndpoint({
    method: 'GET',
    head: 'as GET',
    path: '/api/submit-status/{owner}/{name}',
    operation: 'getSubmitStatus',
    tag: 'submit',
    summary: 'Get the status of a submitted repository',
    description:
      'live: the app is reachable at url. in_pipeline: the current stage, its start and the position in the build queue. rejected: the reason, with rule, file, line and fix. Of a private repository, only who sends an author key, or a token with the scope `read`, gets what is read from its source.',
    params: repositoryPath,
    query: hostQuery,
    output: statusView,
    outputDescription: 'The status.',
    problems: [notSubmitted],
    async handler({ params, query }, context) {
      const app = await findNewApp(services.apps, services.hosts, { ...params, ...query });
      return toAuthorView(app, services, await identifyReader(app, services, context));
    },
  });
}

/**
 * Who reads the status of a private repository. With a key that does not open it, or not yet, that is anyone, as without
 * one: a program sends its key to find out.
 */
async function identifyReader(app: App, services: SubmitServices, context: CallContext): Promise<Reader> {
  if (!isPrivate(app) || !context.headers.has('authorization')) return 'anyone';
  return services.identifyAuthor(app.metadata.name, context, 'status').then(
    () => 'author',
    (error: unknown) => {
      if (error instanceof Problem) return 'anyone';
      throw error;
    },
  );
}

function toAuthorView(app: App, services: SubmitServices, reader: Reader): StatusView {
  const view = toStatusView(app, toLinkBase(services), reader);
  const fault = view.status === 'live' ? services.findOperationsFault?.(app.metadata.name) : undefined;
  return fault === undefined ? view : { ...view, operations_fault: fault };
}

function createLogEndpoint(services: SubmitServices): Endpoint {
  const { apps, hosts, openLog, logStreams, metrics, keepaliveMs = 15_000, logRetryMs: retryMs = 500 } = services;
  const slots = new StreamSlots(logStreams, (taken) => {
    metrics.streams.set(taken);
  });
  const createWriter = ({ mediaType }: RequestContext): Writer =>
    mediaType === plainTextType
      ? createTextWriter(toLinkBase(services), 'author')
      : createEventWriter(toLinkBase(services), 'author');
  /** The log of a public repository is public, and says what the status says to its author. */
  const assertReadable = async (app: App, context: CallContext): Promise<void> => {
    if (isPrivate(app)) await services.identifyAuthor(app.metadata.name, context, 'log');
  };
  return defineEndpoint({
    method: 'GET',
    path: '/api/submit-status/{owner}/{name}/log',
    operation: 'followSubmitLog',
    tag: 'submit',
    summary: 'Stream the log of the newest build',
    description:
      'Server-sent events: `stage` and `end` (the status), `log` ({"stage", "line"}), and `gone` if the log is no longer available. ' +
      'Attaches to a running build, replays the log of a finished build while it is available, and resumes after Last-Event-ID. ' +
      'Send Accept: text/plain to get the log as text. The log of a private repository needs an author key, or a token with the scope `logs`.',
    params: repositoryPath,
    query: hostQuery,
    output: z.string(),
    outputDescription: 'The log, from its beginning until the build ends.',
    produces: [eventStreamType, plainTextType],
    problems: [
      ...[notSubmitted, tooManyStreams],
      ...[appKeyRequired, appPrivate, missingScope, tooManyWrongKeys, ledgerUnconfigured, ledgerUnavailable],
    ],
    // HEAD opens no log and takes no slot.
    async head({ params, query }, context) {
      await assertReadable(findApp(apps, hosts, { ...params, ...query }), context);
      const { contentType } = createWriter(context);
      return new Response(null, { headers: { ...streamHeaders, 'content-type': contentType } });
    },
    async handler({ params, query }, context) {
      const app = await findNewApp(apps, hosts, { ...params, ...query });
      await assertReadable(app, context);
      // Rejects here, while a status can still be sent. The slot is taken at the first byte.
      slots.check(context.caller().hash);
      const after = context.headers.get('last-event-id') ?? undefined;
      const open = (signal: AbortSignal): ReturnType<typeof follow> =>
        follow(app.metadata.name, { apps, openLog, retryMs, signal, after });
      return streamLog({ slots, writer: createWriter(context), keepaliveMs, open }, context);
    },
  });
}

export const deployKeyView = z.object({
  repo: z.string().describe('URL of the repository.'),
  public_key: z
    .string()
    .describe('Add it to the repository at its forge, with read access only. It opens no other repository.'),
  fingerprint: z.string().describe('As the forge shows it.'),
  page: z.string().optional().describe('Where the forge takes it, if that is known.'),
});

function createDeployKeyEndpoint({ hosts, lookUp }: SubmitServices): Endpoint {
  return defineEndpoint({
    method: 'GET',
    head: 'as GET',
    path: '/api/deploy-keys/{owner}/{name}',
    operation: 'getDeployKey',
    tag: 'submit',
    summary: 'Get the deploy key of a private repository',
    description:
      'The public half of the key with which this installation reads the repository, if it is private. Add it at the forge with read access, and submit the repository: it is then read over SSH, and nothing of its source is public. Every repository has its own key, which is the same each time. Remove it at the forge to end the access.',
    params: repositoryPath,
    query: hostQuery,
    output: deployKeyView,
    outputDescription: 'The key. It is worth nothing until the repository has it.',
    problems: [noDeployKey, clusterUnavailable],
    async handler({ params: { owner, name }, query: { host = hosts.allowed[0] ?? '' } }) {
      const scheme = hosts.insecure.includes(host.toLowerCase()) ? 'http' : 'https';
      const repository = readRepository(`${scheme}://${host}/${owner}/${name}`, hosts);
      if (repository instanceof RepositoryError)
        throw createValidationProblem([
          { in: 'path', field: 'owner, name', message: `is not accepted: ${repository.message}`, fix: repository.fix },
        ]);
      const answer = await lookUp?.(repository, { via: 'none' }).catch(() => {
        throw new Problem(clusterUnavailable, 'The operator did not answer in time. Try again in a minute.');
      });
      const key = answer?.ok === false ? answer.deployKey : undefined;
      if (key === undefined)
        throw new Problem(
          noDeployKey,
          `This installation reads no private repositories of ${repository.host}. The operator of this installation can set git.sshHostKeys.`,
        );
      return { repo: repository.url, public_key: key.publicKey, fingerprint: key.fingerprint, page: key.page };
    },
  });
}

function toLinkBase({ baseUrl, site, hosts }: SubmitServices): LinkBase {
  return { baseUrl, site, defaultHost: hosts.allowed[0] };
}

function readAddress(text: string, hosts: GitHosts): SubmittedAddress {
  try {
    return parseAddress(text, hosts);
  } catch (error) {
    if (!(error instanceof RepositoryError)) throw error;
    throw createValidationProblem([
      { in: 'body', field: 'repo', message: `is not accepted: ${error.message}`, fix: error.fix },
    ]);
  }
}

/** The endpoints of an API without a cluster: documented as usual, but each call fails and says how to get a cluster. */
export function createSubmitWithoutCluster(baseUrl: string): Endpoint[] {
  const rejectCall = (): Promise<never> =>
    Promise.reject(
      new Problem(
        noCluster,
        'This API runs without a cluster, so it cannot host apps. To start a cluster on this machine, run `npm run up`.',
      ),
    );
  const described = createSubmitEndpoints({
    apps: createAppIndex(createStore<App>({ indexers: appIndexers }), 'none'),
    hosts: { allowed: [], insecure: [] },
    baseUrl,
    site: { domain: 'localhost', port: 443 },
    logStreams: 1,
    submit: rejectCall,
    openLog: rejectCall,
    identifyAuthor: rejectCall,
    metrics: createSubmitMetrics(new Registry()),
  });
  return described.map((endpoint) => ({ ...endpoint, problems: [noCluster], run: rejectCall, call: rejectCall }));
}

export interface SubmitMetrics {
  /** Submissions by `result`: created, known, or the slug of the problem. */
  readonly submissions: Counter<'result'>;
  readonly streams: Gauge;
}

export function createSubmitMetrics(registry: Registry): SubmitMetrics {
  const registers = [registry];
  return {
    submissions: new Counter({
      name: 'moorage_submissions_total',
      help: 'Submissions by result.',
      labelNames: ['result'],
      registers,
    }),
    streams: new Gauge({ name: 'moorage_log_streams', help: 'Build logs being followed.', registers }),
  };
}
