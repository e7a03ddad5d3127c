// The endpoints with which an author runs an app: a key for it, its private side, and what the author does with it.
import { readSlug, selectFormerSlugs } from '../../../crds/slugs.ts';
import { z } from 'zod';
import { isSuspended } from '../../../crds/control.ts';
import type { AppsSite } from '../../../crds/names.ts';
import { toPublicStatus } from '../../../crds/public-status.ts';
import type { Manifest } from '../../../lib/kubernetes/index.ts';
import { createAuthorKey, ownershipFile } from '../../../lib/ownership-file.ts';
import { ledgerUnavailable, ledgerUnconfigured } from '../../billing/index.ts';
import { type CallContext, clusterUnavailable, defineEndpoint, type Endpoint } from '../../http/index.ts';
import { type App, type AppIndex, getApp, readRepository } from '../hosted-apps.ts';
import { describeStatus, isPrivate, resolveUrl } from '../status-view.ts';
import { actionProblems, readingProblems, unknownApp } from '../problems.ts';
import { type ActionName, type AuthorAccess, formatAppKeyLine } from './access.ts';
import type { AuditEntry, AuditLog } from './audit.ts';
import type { AuthorOperation } from './scopes.ts';
import type { TokenStore } from './tokens.ts';
import type { ControlChange, RequestAnnotations, WriteControl } from './control.ts';

export interface AuthorServices {
  readonly apps: Pick<AppIndex, 'get' | 'listAll'>;
  readonly site: AppsSite;
  readonly access: AuthorAccess;
  readonly audit: AuditLog;
  readonly tokens: TokenStore;
  readonly writeControl: WriteControl;
  /** Creates a Secret, and never changes one that exists. @throws ApiError (409 if the name is taken) */
  readonly createSecret: (manifest: Manifest) => Promise<void>;
  /** Maximum number of replicas that an author may set. */
  readonly maximumReplicas: number;
  /** Whether this installation offers own domains, and those of the platform, which no app gets. */
  readonly domains: { readonly offered: boolean; readonly platform: readonly string[] };
  /** Called with each value that an author sets, once it is stored, so that it can be masked in logs. */
  readonly rememberSecret?: ((app: App, name: string, value: string) => Promise<void>) | undefined;
  readonly now?: () => Date;
}

export const slugParams = z.strictObject({
  slug: z.string().min(1).max(63).describe('Name of the app, the first label of its domain.'),
});

/** Problems of every action: those of the author's access, of the audit log and of the cluster. */
export const changeProblems = [...actionProblems, ledgerUnconfigured, ledgerUnavailable, clusterUnavailable];

export function createAuthorAppEndpoints(services: AuthorServices): Endpoint[] {
  return [
    createKeyEndpoint(services),
    createAppEndpoint(services),
    createAuditEndpoint(services),
    createActionEndpoint(services, {
      name: 'restart',
      operation: 'restartApp',
      summary: 'Restart an app',
      description:
        'Starts new pods with the same release. The old ones serve until the new ones are ready; an app with a volume is held for the moment in between.',
      message: 'The restart begins in a moment.',
      change: (now) => ({ restartedAt: now }),
    }),
    createActionEndpoint(services, {
      name: 'suspend',
      operation: 'suspendApp',
      summary: 'Suspend an app',
      description: 'Stops all replicas and builds. Data and address are kept. Suspending it again changes nothing.',
      message: 'The app stops in a moment.',
      change: () => ({ suspended: true }),
    }),
    createActionEndpoint(services, {
      name: 'resume',
      operation: 'resumeApp',
      summary: 'Resume a suspended app',
      description: 'Starts the app again, and builds the newest commit if there is one.',
      message: 'The app starts in a moment.',
      change: () => ({ suspended: undefined }),
    }),
  ];
}

function createKeyEndpoint({ apps }: AuthorServices): Endpoint {
  return defineEndpoint({
    method: 'POST',
    path: '/api/apps/{slug}/keys',
    operation: 'issueAppKey',
    tag: 'apps',
    summary: 'Get a key that opens an app to its author',
    description:
      'Anybody can ask for a key. It is worth nothing until its line is committed to .moorage-owner on the default branch of the repository of the app, and nothing is stored here. The same key also opens the statements of the author.',
    params: slugParams,
    output: z.object({
      key: z.string().describe('Keep it secret. Send it as Authorization: Bearer.'),
      file: z.string().describe('File at the top of the default branch.'),
      line: z.string().describe('The line for that file: a hash, which is safe to publish.'),
      repository: z.string(),
      message: z.string(),
    }),
    outputDescription: 'The key and its line.',
    problems: [unknownApp],
    handler: async ({ params }) => {
      const app = getApp(apps, params.slug);
      const key = createAuthorKey();
      const { url } = readRepository(app);
      return Promise.resolve({
        key,
        file: ownershipFile,
        line: formatAppKeyLine(app, key),
        repository: url,
        message: `Commit the line to ${ownershipFile} at the top of the default branch of ${url}, and keep the key: it is not stored. It opens ${params.slug} as soon as the commit was reviewed.`,
      });
    },
  });
}

export const releaseView = z.object({
  commit: z.string(),
  ready_at: z.string().describe('When it was first ready, RFC 3339.'),
  good: z.boolean().describe('Whether it has served long enough without a crash to be a fallback.'),
  crashed_at: z.string().optional(),
  serving: z.boolean(),
  pinned: z.boolean().describe('Whether its commit is pinned: the newest release of it runs, and nothing newer.'),
});

/** What the author may see of spec.control: hashes of keys and of the password stay out of it. */
const ownControl = z.object({
  suspended: z.boolean().optional(),
  restartedAt: z.string().optional(),
  release: z.string().optional(),
  deleteAfter: z.string().optional(),
  replicas: z.int().optional(),
  idleAfter: z.string().optional(),
  healthPath: z.string().optional(),
  env: z.array(z.object({ name: z.string(), value: z.string() })).optional(),
  secrets: z.array(z.object({ name: z.string(), version: z.int() })).optional(),
  access: z.string().optional(),
});

export const ownAppView = z.object({
  slug: z.string(),
  repository: z.string(),
  private: z.boolean().describe('Whether the repository is private, and read with its deploy key.'),
  status: z.enum(['live', 'in_pipeline', 'rejected']),
  message: z.string().describe('The status in a sentence.'),
  url: z.string(),
  former_slugs: z
    .array(z.object({ slug: z.string(), until: z.string().describe('RFC 3339.') }))
    .describe('Slugs that the app had, and until when they lead to it.'),
  suspended: z.boolean(),
  control: ownControl.describe('What the author has set without a commit. Of secrets, the names and versions alone.'),
  releases: z.array(releaseView).describe('Kept releases, the newest first.'),
  allowed: z
    .array(z.string())
    .describe(
      'What the key or token of the request may do: the scopes of a token, or all of them, `owner` and, with a key, `key`.',
    ),
});

function createAppEndpoint({ access, site }: AuthorServices): Endpoint {
  return defineEndpoint({
    method: 'GET',
    path: '/api/apps/{slug}',
    operation: 'getOwnApp',
    tag: 'apps',
    summary: 'Get the private side of an app',
    description: 'What the author has set, and the kept releases.',
    params: slugParams,
    output: ownAppView,
    outputDescription: 'The app as its author sees it.',
    returnsCallerData: true,
    problems: readingProblems,
    head: 'as GET',
    handler: async ({ params }, context) => {
      const { app, scopes } = await access.identify(params.slug, context, 'getOwnApp');
      return { ...toAppView(app, site), allowed: [...scopes] };
    },
  });
}

export function toAppView(app: App, site: AppsSite): Omit<z.input<typeof ownAppView>, 'allowed'> {
  const status = toPublicStatus(app);
  const url = resolveUrl(app, site);
  const { releases = [], served } = app.status ?? {};
  return {
    slug: readSlug(app),
    repository: readRepository(app).url,
    private: isPrivate(app),
    status: status.status,
    message: describeStatus(status, url, app.status?.source?.commit),
    url,
    former_slugs: selectFormerSlugs(app, new Date()).map(({ name, until }) => ({ slug: name, until })),
    suspended: isSuspended(app.spec),
    control: ownControl.parse(app.spec.control ?? {}),
    releases: releases.map(({ commit, image, readyAt, goodAt, crashedAt }) => ({
      commit,
      ready_at: readyAt,
      good: goodAt !== undefined,
      crashed_at: crashedAt,
      serving: served?.commit === commit && served.image === image,
      pinned: app.spec.control?.release === commit,
    })),
  };
}

export const auditEntryView = z.object({
  id: z.string(),
  at: z.string().describe('RFC 3339.'),
  actor: z
    .string()
    .describe('Who did it: the first 12 digits of the hash of an author key, or `token:` and the id of a token.'),
  actor_name: z.string().optional().describe('Name of the token.'),
  action: z.string(),
  detail: z.record(z.string(), z.unknown()).describe('What was changed, without secret values.'),
  outcome: z
    .enum(['accepted', 'failed'])
    .describe('accepted: it was carried out, unless an entry with the same request says failed.'),
  request: z.string().describe('X-Request-Id of the request.'),
});

export const auditView = z.object({
  entries: z.array(auditEntryView),
  next: z.string().optional().describe('`before` of the next page, if there may be one.'),
});

export function toAuditEntryView({ at, actor_name: name, ...entry }: AuditEntry): z.input<typeof auditEntryView> {
  return { ...entry, at: at.toISOString(), actor_name: name ?? undefined };
}

function createAuditEndpoint({ access, audit }: AuthorServices): Endpoint {
  return defineEndpoint({
    method: 'GET',
    path: '/api/apps/{slug}/audit',
    operation: 'getAuditLog',
    tag: 'apps',
    summary: 'List what was done with an app',
    description: 'Every action of an author: what, when, with which key or token, and in which request. Newest first.',
    params: slugParams,
    query: z.strictObject({
      limit: z.coerce.number().int().min(1).max(200).default(50).describe('Entries, from 1 to 200; default 50.'),
      before: z
        .string()
        .regex(/^\d{1,18}$/, 'must be the id of an entry')
        .optional()
        .describe('Only entries that are older than the one with this id.'),
    }),
    output: auditView,
    outputDescription: 'The actions.',
    returnsCallerData: true,
    problems: [...readingProblems, ledgerUnconfigured, ledgerUnavailable],
    head: 'as GET',
    handler: async ({ params, query }, context) => {
      const { app } = await access.identify(params.slug, context, 'getAuditLog');
      const entries = await audit.list(app.metadata.uid, query.limit, query.before);
      return {
        entries: entries.map(toAuditEntryView),
        next: entries.length === query.limit ? entries.at(-1)?.id : undefined,
      };
    },
  });
}

/** An action without input that changes the control of an app. */
interface SimpleAction {
  /** Last segment of its path, and its name in the audit log. */
  readonly name: string;
  readonly operation: AuthorOperation;
  readonly summary: string;
  readonly description: string;
  readonly message: string;
  /** @param now RFC 3339 */
  readonly change: (now: string) => ControlChange;
}

export const actionView = z.object({ slug: z.string(), message: z.string() });

function createActionEndpoint(services: AuthorServices, action: SimpleAction): Endpoint {
  const { name, operation, summary, description, message, change } = action;
  return defineEndpoint({
    method: 'POST',
    path: `/api/apps/{slug}/${name}`,
    operation,
    tag: 'apps',
    summary,
    description,
    params: slugParams,
    output: actionView,
    outputDescription: 'The action was accepted. Follow it with the status of the app.',
    problems: changeProblems,
    handler: async ({ params }, context) => {
      await changeControl(services, params.slug, context, { operation, action: name }, change);
      return { slug: params.slug, message };
    },
  });
}

/** Changes the control of an app for its author. @throws as AuthorAccess.act */
export async function changeControl(
  { access, writeControl, now = () => new Date() }: AuthorServices,
  slug: string,
  context: CallContext,
  name: ActionName,
  change: (now: string) => ControlChange,
  request?: (stored: App, now: Date) => RequestAnnotations,
): Promise<App> {
  return access.act(slug, context, name, ({ app }) =>
    writeControl(
      app,
      () => change(now().toISOString()),
      request === undefined ? undefined : (stored) => request(stored, now()),
    ),
  );
}
