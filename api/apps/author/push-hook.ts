// Receives push events of git forges, so that a commit is built as soon as it is pushed: verifies the signature over the
// bytes of the body, and requests a poll of the repository. Polling at an interval stays, for hooks that never arrive.
import { createHmac } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { z } from 'zod';
import { isSuspended } from '../../../crds/control.ts';
import { readPreviews } from '../../../crds/effective-settings.ts';
import { annotations } from '../../../crds/names.ts';
import { isChosenBranch } from '../../../crds/previews.ts';
import { isCommitId } from '../../../lib/git/git.ts';
import { Problem } from '../../../lib/problem.ts';
import { isSameSecret } from '../../../lib/sealed-text.ts';
import type { Logger } from '../../../lib/telemetry.ts';
import { ledgerUnavailable } from '../../billing/index.ts';
import { clusterUnavailable, defineEndpoint, type Endpoint, rawBody } from '../../http/index.ts';
import { type App, getApp, readRepository } from '../hosted-apps.ts';
import { beingRemoved, hooksUnconfigured, tooManyWrongKeys, unknownApp, wrongHookSignature } from '../problems.ts';
import type { WriteControl } from './control.ts';
import { slugParams, type AuthorServices } from './endpoints.ts';
import { createHookSecretEndpoints, type HookSecretOptions, listHookSecrets } from './push-hook-secrets.ts';

export interface PushHookOptions extends HookSecretOptions {
  readonly polls: PushPolls;
}

/** Bytes of a push event that are read. */
const bodyLimit = 1_048_576;

export function createPushHookEndpoints(services: AuthorServices, options: PushHookOptions): Endpoint[] {
  return [...createHookSecretEndpoints(services, options), createHookEndpoint(services, options)];
}

function createHookEndpoint({ access, apps }: AuthorServices, options: PushHookOptions): Endpoint {
  return defineEndpoint({
    method: 'POST',
    path: '/api/apps/{slug}/push-hook',
    operation: 'receivePush',
    tag: 'apps',
    summary: 'Receive a push event of a git forge',
    description:
      'For the webhooks of GitHub, GitLab, Gitea and Forgejo, and for scripts. The signature is checked; an event of the tracked branch, or of a pull request or branch with previews, makes the platform look at the repository immediately. Other events have no effect. Needs no author key.',
    params: slugParams,
    body: rawBody,
    bodyForm: 'raw',
    bodyLimit,
    successStatus: 202,
    output: z.object({
      polled: z.boolean().describe('Whether the repository is looked at now.'),
      reason: z.string().optional().describe('Why it is not, or why its newest commit is not deployed.'),
    }),
    outputDescription: 'The event was received.',
    problems: [
      ...[unknownApp, wrongHookSignature, tooManyWrongKeys, beingRemoved, hooksUnconfigured, clusterUnavailable],
      ledgerUnavailable,
    ],
    handler: async ({ params: { slug }, body }, context) => {
      const app = getApp(apps, slug);
      const { uid } = app.metadata;
      // A forge sends the hooks of all its users from a few networks: a wrong secret of one app must not stop the others.
      access.assertWithinLimit(context, uid);
      const secrets = await listHookSecrets(uid, options);
      if (!secrets.some((secret) => isSigned(context.headers, body, secret))) {
        access.countWrongKey(context, uid);
        throw new Problem(
          wrongHookSignature,
          `The signature is missing or wrong. POST /api/apps/${slug}/push-hook-secret gives you the secret to enter at your git forge.`,
        );
      }
      const reason = findReasonToIgnore(app, readPush(context.headers, body));
      if (reason !== undefined) return { polled: false, reason };
      await options.polls.request(app);
      const pinned = app.spec.control?.release;
      return pinned === undefined
        ? { polled: true }
        : { polled: true, reason: `Commit ${pinned.slice(0, 7)} is pinned, so that no newer one is deployed.` };
    },
  });
}

/** Headers with an HMAC-SHA256 of the body, in hexadecimal, some of them after `sha256=`. */
const signatureHeaders = ['x-hub-signature-256', 'x-gitea-signature', 'x-forgejo-signature', 'x-moorage-signature'];

/** Whether a header of the request proves that its sender knows the secret. In constant time for each header. */
export function isSigned(headers: Headers, body: Uint8Array, secret: string): boolean {
  const digest = createHmac('sha256', secret).update(body).digest('hex');
  const bearer = /^Bearer +(\S+)$/i.exec(headers.get('authorization')?.trim() ?? '')?.[1];
  const proofs = [
    ...signatureHeaders.map((name) => [
      headers
        .get(name)
        ?.trim()
        .replace(/^sha256=/i, '')
        .toLowerCase(),
      digest,
    ]),
    [headers.get('x-gitlab-token') ?? undefined, secret],
    [bearer, secret],
  ];
  return proofs.some(([sent, expected = '']) => sent !== undefined && isSameSecret(sent, expected));
}

// The event: only what decides whether it concerns the app is read.

const eventHeaders = ['x-github-event', 'x-gitlab-event', 'x-gitea-event', 'x-forgejo-event'];

const repositoryFields = z.object({
  full_name: z.string().optional(),
  path_with_namespace: z.string().optional(),
  default_branch: z.string().optional(),
});

const pushFields = z.object({
  ref: z.string().optional(),
  repository: z.union([repositoryFields, z.string()]).optional(),
  project: repositoryFields.optional(),
});

/** A push event; undefined fields are not known. */
interface Push {
  /** Name of the event at its forge; undefined for a script. */
  readonly event: string | undefined;
  /** Like refs/heads/main. */
  readonly reference: string | undefined;
  /** owner/name */
  readonly repository: string | undefined;
  readonly defaultBranch: string | undefined;
}

/** Reads an event of any of the forges, or of a script, which may send nothing. */
export function readPush(headers: Headers, body: Uint8Array): Push {
  const event = eventHeaders.map((name) => headers.get(name)).find((name) => name !== null) ?? undefined;
  const { ref, repository, project } = parseFields(headers, Buffer.from(body).toString('utf8'));
  const fields = project ?? (typeof repository === 'string' ? { full_name: repository } : repository);
  return {
    event: event?.toLowerCase(),
    reference: ref === undefined || ref.startsWith('refs/') ? ref : `refs/heads/${ref}`,
    repository: fields?.full_name ?? fields?.path_with_namespace,
    defaultBranch: fields?.default_branch,
  };
}

/** A body that is no JSON has no fields. GitHub sends a form unless the hook is set to JSON. */
function parseFields(headers: Headers, text: string): z.output<typeof pushFields> {
  const isForm = headers.get('content-type')?.startsWith('application/x-www-form-urlencoded') === true;
  try {
    return (
      pushFields.safeParse(JSON.parse((isForm ? new URLSearchParams(text).get('payload') : text) ?? '')).data ?? {}
    );
  } catch {
    return {};
  }
}

/** A script names no event. */
const pushEvents: ReadonlySet<string | undefined> = new Set([undefined, 'push', 'push hook', 'tag push hook']);

/** Events about pull and merge requests, in which no reference is read. */
const pullEvents: ReadonlySet<string> = new Set(['pull_request', 'pull_request_sync', 'merge request hook']);

/** Why a push does not concern the app, as a sentence; undefined if the repository is to be polled. */
export function findReasonToIgnore(app: App, push: Push): string | undefined {
  const { metadata, spec } = app;
  const { event, reference, repository } = push;
  if (metadata.deletionTimestamp !== undefined) return 'The app is being deleted.';
  if (isSuspended(spec)) return 'The app is suspended. It looks for a new commit when it is resumed.';
  const previews = readPreviews(app);
  const isPull = event !== undefined && pullEvents.has(event);
  const reason = judgeEvent(event, isPull, previews.pullRequests);
  if (reason !== undefined) return reason;
  const { owner, name } = readRepository(app);
  // The path alone: a forge may know itself by another host name than its address here.
  if (repository !== undefined && repository.toLowerCase() !== `${owner}/${name}`.toLowerCase())
    return `The push is to ${repository.slice(0, 200)}, and the app is built from ${owner}/${name}.`;
  // A hook only makes the look at the repository earlier: what it says decides nothing else.
  const isShown = isPull || (reference !== undefined && isChosenBranch(reference, previews.branches));
  return isShown ? undefined : judgeReference(app, push);
}

function judgeEvent(event: string | undefined, isPull: boolean, showsPulls: boolean): string | undefined {
  if (isPull) return showsPulls ? undefined : 'The app has no previews of pull requests.';
  return pushEvents.has(event) ? undefined : `The event ${event?.slice(0, 40)} is no push.`;
}

/** Why the reference of a push does not concern what the app itself is built from. */
function judgeReference(app: App, { reference, defaultBranch }: Push): string | undefined {
  if (isCommitId(app.spec.source.revision)) return 'The app is built from a fixed commit.';
  const tracked = listTracked(app, defaultBranch);
  return reference === undefined || tracked.length === 0 || tracked.includes(reference)
    ? undefined
    : `The push is to ${reference.slice(0, 200)}, and the app is built from ${tracked.join(' or ')}.`;
}

/** The full names of the references that the app may be built from; none while that is unknown. */
function listTracked({ spec, status }: App, defaultBranch: string | undefined): string[] {
  const { revision } = spec.source;
  if (revision?.startsWith('refs/') === true) return [revision];
  if (revision !== undefined) return [`refs/heads/${revision}`, `refs/tags/${revision}`];
  const main = defaultBranch === undefined ? undefined : `refs/heads/${defaultBranch}`;
  // Of a package, the reference is a version.
  return [status?.source?.reference, main]
    .filter((each) => each !== undefined)
    .filter((each) => each.startsWith('refs/'));
}

// Polls: at most one each second per app. Of several pushes within a second, the last one is followed by a poll.

export interface PushPollsOptions {
  readonly writeControl: WriteControl;
  readonly log: Logger;
  /** Milliseconds between two polls of an app; default 1 s. */
  readonly everyMs?: number;
  readonly now?: () => number;
}

interface AppPolls {
  lastAt: number;
  /** Whether a later poll waits for its time; it covers every push until then. */
  isWaiting: boolean;
}

/** Failed polls are repeated this often; after that, the interval of the app finds the commit. */
const attempts = 3;

export class PushPolls {
  readonly #options: PushPollsOptions;
  readonly #polls = new Map<string, AppPolls>();
  readonly #pending = new Set<Promise<void>>();
  readonly #stopping = new AbortController();

  constructor(options: PushPollsOptions) {
    this.#options = options;
  }

  /** Requests a poll of the app's repository now, or as soon as a second has passed since the last one. */
  async request(app: App): Promise<void> {
    const { everyMs = 1_000, now = Date.now } = this.#options;
    const { uid } = app.metadata;
    for (const [known, { lastAt, isWaiting }] of this.#polls)
      if (!isWaiting && now() - lastAt >= everyMs) this.#polls.delete(known);
    const polls = this.#polls.get(uid);
    if (polls === undefined) {
      this.#polls.set(uid, { lastAt: now(), isWaiting: false });
      await this.#write(app);
    } else this.#schedule(app, polls, 1);
  }

  /** Requests the polls that are waiting, and resolves when they are written. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    while (this.#pending.size > 0) await Promise.all(this.#pending);
  }

  #schedule(app: App, polls: AppPolls, attempt: number): void {
    if (polls.isWaiting) return;
    polls.isWaiting = true;
    const pending = this.#writeLater(app, polls, attempt).finally(() => this.#pending.delete(pending));
    this.#pending.add(pending);
  }

  /** Never rejects. */
  async #writeLater(app: App, polls: AppPolls, attempt: number): Promise<void> {
    const { log, everyMs = 1_000, now = Date.now } = this.#options;
    const waitMs = Math.max(0, polls.lastAt + everyMs - now());
    await sleep(waitMs, undefined, { signal: this.#stopping.signal }).catch(() => undefined);
    // A push from here on gets another poll: this one may read the repository before it.
    polls.isWaiting = false;
    polls.lastAt = now();
    try {
      await this.#write(app);
    } catch (error) {
      log.warn({ err: error, app: app.metadata.name, attempt }, 'could not request a poll after a push');
      if (attempt < attempts) this.#schedule(app, polls, attempt + 1);
    }
  }

  async #write(app: App): Promise<void> {
    const { writeControl, now = Date.now } = this.#options;
    await writeControl(
      app,
      () => ({}),
      () => ({ [annotations.poll]: new Date(now()).toISOString() }),
    );
  }
}
