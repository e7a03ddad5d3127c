// The status of a submitted repository and of its app, as JSON and as a sentence.
import { readSlug } from '../../crds/slugs.ts';
import { z } from 'zod';
import { findAuthorContact, contactSources, listPublicSettings } from '../../crds/effective-settings.ts';
import { formatAppUrl, type AppsSite } from '../../crds/names.ts';
import { finding, plan } from '../../crds/hosted-app.ts';
import {
  toPublicStatus,
  type PublicPin,
  type PublicProgress,
  type PublicReason,
  type PublicStatus,
} from '../../crds/public-status.ts';
import { imageWait } from '../../crds/status.ts';
import { omitUndefined } from '../../lib/values.ts';
import { readRepository, type App } from './hosted-apps.ts';
import { licenseOffer, offerLicense } from './license-offer.ts';

/** Stages of the pipeline in order. An app that has passed the last one is live. */
export const stageOrder = ['pending', 'queued', 'cloning', 'reviewing', 'building', 'deploying', 'routing'] as const;

const rejection = z.object({
  rule: z.string().describe('Name of the rule.'),
  file: z.string().optional(),
  line: z.int().optional().describe('Line in that file, from 1.'),
  message: z.string().describe('What was found.'),
  fix: z.string().describe('What to change.'),
  log: z.string().optional().describe('Last lines of the log.'),
});

const progress = z.object({
  stage: z.enum(stageOrder),
  since: z.string().optional(),
  commit: z.string().optional(),
  position: z.int().optional().describe('Position in the build queue, from 1.'),
  message: z.string().optional(),
});

export const pastRun = z.object({
  number: z.int(),
  commit: z.string(),
  reason: z.string().describe('Why it was built.'),
  result: z.string().describe('Result of the build. Succeeded means that an image was built, not that it serves.'),
  message: z.string().optional(),
  release: z
    .string()
    .optional()
    .describe("Result of the image's release: Pending, Released, Failed (it does not start, or crashes) or Skipped."),
  release_message: z.string().optional().describe('Why the release failed.'),
  started_at: z.string().optional(),
  finished_at: z.string().optional(),
});

export const idleView = z.object({
  state: z
    .enum(['awake', 'napping', 'asleep', 'waking'])
    .describe('asleep: no process, the next request starts one; napping: a process with minimal resource requests.'),
  since: z.string().describe('Start of this state, RFC 3339.'),
  idle_seconds: z.int().describe('Idle seconds after which the app rests.'),
  wakes: z
    .object({
      count: z.int().describe('Number of measured wakes.'),
      p50_ms: z.int().describe('Median of recent wakes.'),
      p95_ms: z.int().describe('95th percentile of recent wakes.'),
    })
    .optional()
    .describe('Duration of its wakes, from the first request to the first connection. They are not billed.'),
});
export type IdleView = z.output<typeof idleView>;

/** The state of a component of an app that has several. */
export const componentView = z.object({
  name: z.string(),
  kind: z.string().describe('What it is: web, worker, task or cron.'),
  ready: z
    .boolean()
    .describe('Whether it runs and, with a port, accepts connections. Of a task, whether it ended without an error.'),
  restarts: z.int().optional().describe('How often it was restarted, in the pod that serves.'),
  message: z.string().optional().describe('Why it is not ready.'),
});

/** Who reads a status: what is read from a private repository is for its author. */
export type Reader = 'anyone' | 'author';

/** Response of submit-status, and with `created` and `polled` of a submission. */
export const statusView = z.looseObject({
  status: z.enum(['live', 'in_pipeline', 'rejected']),
  message: z.string().describe('Status and next step in a sentence.'),
  repo: z.string().describe('URL of the repository.'),
  private: z
    .literal(true)
    .optional()
    .describe(
      'The repository is private. Without an author key, the status has nothing that is read from its source: no log, plan, findings, components or settings, and no reason of a rejection.',
    ),
  readable: z.literal(true).optional().describe('The key of the request opens what is read from the private source.'),
  slug: z.string().describe('Name of the app.'),
  url: z.string().describe('URL of the app, reachable once it is live.'),
  status_url: z.string(),
  log_url: z.string().describe('The build log as server-sent events, or as plain text with Accept: text/plain.'),
  commit: z
    .string()
    .optional()
    .describe('The commit that is served while live; otherwise the newest commit that was processed.'),
  newest_commit: z.string().optional().describe('Newest known commit of the repository.'),
  since: z.string().optional().describe('Start of this status, RFC 3339.'),
  stage: z.enum(stageOrder).optional().describe('Current stage, while in_pipeline.'),
  position: z.int().optional().describe('Position in the build queue, from 1, while queued.'),
  stages: z
    .array(z.object({ stage: z.enum(stageOrder), state: z.enum(['done', 'current', 'ahead']) }))
    .optional()
    .describe('All stages with their state, while in_pipeline.'),
  reason: z.string().optional().describe('Why it was rejected, in a sentence.'),
  rejection: rejection.optional().describe('The same as fields: rule, file, line, message, fix, log.'),
  license: licenseOffer
    .optional()
    .describe('How to add a licence in one step, if a commit was rejected for having none.'),
  pinned: z
    .object({ commit: z.string(), newest: z.string().optional().describe('Newest commit, if it is another one.') })
    .optional()
    .describe('The release that the author pinned: no other commit is built or deployed until they deploy again.'),
  update: progress.optional().describe('A newer commit in the pipeline while the app is live.'),
  problem: rejection.optional().describe('Why a newer commit was rejected while the app is live.'),
  warning: z.string().optional().describe('A problem of the live app, such as errors on /.'),
  page: z
    .object({
      status: z.int().optional().describe('Status of the response at /.'),
      assets: z.int().optional().describe("Number of the app's own scripts, styles and images that the page loads."),
      faults: z.array(z.string()).optional().describe('What does not work.'),
    })
    .optional()
    .describe("Inspection of the app's page through the gateway, once it is live."),
  operations_fault: z
    .string()
    .optional()
    .describe(
      'Why agents find no operations of the app although it offers them, or why it does not answer them any more.',
    ),
  idle: idleView.optional().describe('State of an app that rests when unused. Absent: it always runs.'),
  components: z
    .array(componentView)
    .optional()
    .describe('State of each component of the release that serves. Absent: the app is one process.'),
  plan: plan.optional().describe('How the image is built, and why.'),
  findings: z.array(finding).optional().describe('Findings of the review, including warnings.'),
  settings: z
    .array(z.object({ field: z.string(), value: z.string(), from: z.string() }))
    .optional()
    .describe(
      'Each field that moorage.yaml in the repository sets, with its effective value and the origin of that value. For variables set by the operator of this installation, or by the author through the API, only the names.',
    ),
  contact_from: z.enum(contactSources).optional().describe("Origin of the app's contact. Absent: there is none."),
  contact_verified: z
    .boolean()
    .optional()
    .describe(
      'false: the contact was given with the submission, which anyone can make, and the author can replace it.',
    ),
  history: z.array(pastRun).optional().describe('Past pipeline runs, newest first.'),
  poll_after_seconds: z
    .int()
    .optional()
    .describe('Seconds to wait before polling again; absent when nothing is in progress.'),
});
export type StatusView = z.input<typeof statusView>;

/** The parts of links to an app. */
export interface LinkBase {
  /** Like https://moorage.localhost */
  readonly baseUrl: string;
  readonly site: AppsSite;
  /** The git host that links leave out. */
  readonly defaultHost: string | undefined;
}

export function toStatusView(app: App, linkBase: LinkBase, reader: Reader = 'anyone'): StatusView {
  const isHidden = reader === 'anyone' && isPrivate(app);
  const status = isHidden ? toVisibleStatus(app) : toPublicStatus(app);
  const { history, source } = app.status ?? {};
  const newest = source?.commit;
  const contact = findAuthorContact(app);
  return {
    status: status.status,
    message: describeStatus(status, resolveUrl(app, linkBase.site), newest),
    ...formatAddresses(app, linkBase),
    ...(isPrivate(app) ? { private: true as const, ...(isHidden ? {} : { readable: true as const }) } : {}),
    ...toDetailsView(status),
    pinned: status.pinned,
    newest_commit: newest,
    idle: toIdleView(app),
    ...(isHidden ? {} : toSourceView(app, status)),
    contact_from: contact?.from,
    contact_verified: contact?.verified,
    history: history?.map((run) => (isHidden ? { ...toPastRunView(run), ...withoutMessages } : toPastRunView(run))),
  };
}

/** Messages can quote files and logs. */
const withoutMessages = { message: undefined, release_message: undefined };

/** What is read from the source, or from what it does. */
function toSourceView(app: App, status: PublicStatus): Partial<StatusView> {
  const { plan: made, findings, components } = app.status ?? {};
  return {
    license: offerLicense(app, findRejection(status)),
    page: toPageView(app),
    components,
    plan: made,
    findings: findings?.length === 0 ? undefined : findings,
    // Not from the status, which may contain values that have been hidden since.
    settings: listPublicSettings(app),
  };
}

export function isPrivate({ spec }: App): boolean {
  return spec.source.private === true;
}

/** Rules that say nothing of the source. */
const openRules = /^(platform\/suspended|source\/(repository|revision|deploy-key|package)-[a-z-]+)$/;

/** The status of an app as everybody may read it: of a private repository, without texts that can quote its source. */
export function toVisibleStatus(app: App): PublicStatus {
  const status = toPublicStatus(app);
  if (!isPrivate(app)) return status;
  const hide = (reason: PublicReason): PublicReason =>
    openRules.test(reason.rule)
      ? reason
      : {
          // Which rule it was can say what is in the source, such as a key.
          rule: 'source/private',
          message: 'The repository is private, so only its author sees why.',
          fix: 'Sign in with your author key, or run `moorage status` with it.',
        };
  switch (status.status) {
    case 'rejected':
      return { ...status, reason: hide(status.reason) };
    case 'in_pipeline':
      return omitUndefined({ ...status, message: undefined });
    case 'live': {
      const { warning: _warning, problem, update, ...rest } = status;
      return {
        ...rest,
        ...(problem === undefined ? {} : { problem: hide(problem) }),
        ...(update === undefined ? {} : { update: omitUndefined({ ...update, message: undefined }) }),
      };
    }
  }
}

function findRejection(status: PublicStatus): PublicReason | undefined {
  if (status.status === 'rejected') return status.reason;
  return status.status === 'live' ? status.problem : undefined;
}

function toPageView({ status }: App): StatusView['page'] {
  const { seenAt, status: answered, assets, faults } = status?.page ?? {};
  return seenAt === undefined ? undefined : { status: answered, assets, faults };
}

/** Describes the status in a sentence. @param newest newest known commit of the repository */
export function describeStatus(status: PublicStatus, url: string, newest?: string): string {
  const { pinned } = status;
  if (pinned === undefined) return describeUnpinned(status, url, newest);
  // Compared to the pinned commit, there is no newer one.
  return `${describePinned(status, url, pinned.commit)} ${describePin(pinned)}`;
}

function describePinned(status: PublicStatus, url: string, commit: string): string {
  if (status.status !== 'live' || status.commit === commit) return describeUnpinned(status, url, commit);
  const live = `The app is live at ${url}, running another commit than the pinned one.`;
  if (status.update !== undefined)
    return `${live} The pinned one is being rolled out: ${lowercaseFirst(describeProgress(status.update))}`;
  const { problem } = status;
  return problem === undefined ? live : `${live} ${describeReason(problem)} ${endSentence(problem.fix)}`;
}

function describePin({ commit, newest }: PublicPin): string {
  return newest === undefined
    ? `Commit ${commit.slice(0, 7)} is pinned; newer commits are not deployed until the next deploy.`
    : `Commit ${commit.slice(0, 7)} is pinned; the newest commit ${newest.slice(0, 7)} is not deployed until the next deploy.`;
}

/** Address of the page with the status of a repository's builds. @param baseUrl without a slash at the end */
export function formatStatusPageUrl(
  { host, owner, name }: { readonly host: string; readonly owner: string; readonly name: string },
  baseUrl: string,
): string {
  return `${baseUrl}/status/${encodeURIComponent(owner)}/${encodeURIComponent(name)}?host=${encodeURIComponent(host)}`;
}

function describeUnpinned(status: PublicStatus, url: string, newest: string | undefined): string {
  if (status.status === 'rejected') return `${describeReason(status.reason)} ${endSentence(status.reason.fix)}`;
  if (status.status === 'in_pipeline') return `${describeProgress(status)} The app will be live at ${url}.`;
  if (status.commit === newest && (status.update !== undefined || status.problem !== undefined))
    return describeSameCommit(status, url);
  if (status.update !== undefined)
    return `The app is live at ${url}. A newer commit is in the pipeline: ${lowercaseFirst(describeProgress(status.update))}`;
  if (status.problem !== undefined)
    return `The app is live at ${url}, running an older commit. The newest commit was rejected: ${describeReason(status.problem)} ${endSentence(status.problem.fix)}`;
  return status.warning === undefined
    ? `The app is live at ${url}.`
    : `The app is live at ${url}, but it ${endSentence(status.warning)}`;
}

/** There is no newer commit: the serving one is rolled out again or has a problem itself. */
function describeSameCommit({ update, problem }: PublicStatus & { status: 'live' }, url: string): string {
  if (update !== undefined)
    return `The app is live at ${url}. Its commit is being rolled out again: ${lowercaseFirst(describeProgress(update))}`;
  return problem === undefined
    ? `The app is live at ${url}.`
    : `The app is live at ${url}, with a problem: ${describeReason(problem)} ${endSentence(problem.fix)}`;
}

/** Describes a reason with its file and line in a sentence. */
export function describeReason(reason: PublicReason): string {
  const line = reason.line === undefined ? '' : `:${reason.line}`;
  const position = reason.file === undefined ? '' : `${reason.file}${line}: `;
  return endSentence(`${position}${reason.message}`);
}

function formatAddresses(
  app: App,
  { baseUrl, site, defaultHost }: LinkBase,
): Pick<StatusView, 'repo' | 'slug' | 'url' | 'status_url' | 'log_url'> {
  const { url: repo, host, owner, name } = readRepository(app);
  const statusUrl = `${baseUrl}/api/submit-status/${owner}/${name}`;
  const query = host === defaultHost ? '' : `?host=${encodeURIComponent(host)}`;
  return {
    repo,
    slug: readSlug(app),
    url: resolveUrl(app, site),
    status_url: `${statusUrl}${query}`,
    log_url: `${statusUrl}/log${query}`,
  };
}

/** The URL of the app, which works once the app is live. */
export function resolveUrl(app: App, site: AppsSite): string {
  return app.status?.url ?? formatAppUrl(readSlug(app), site);
}

function toDetailsView(status: PublicStatus): Partial<StatusView> {
  const { commit, since } = status;
  switch (status.status) {
    case 'live':
      return {
        commit,
        since,
        update: status.update,
        problem: status.problem,
        warning: status.warning,
        poll_after_seconds: status.update === undefined ? undefined : 2,
      };
    case 'rejected':
      return { commit, since, reason: describeReason(status.reason), rejection: status.reason };
    case 'in_pipeline': {
      const { stage, position } = status;
      const current = stageOrder.indexOf(stage);
      const stages = stageOrder.map((name, index) => ({ stage: name, state: toStageState(index, current) }));
      return { commit, since, stage, position, stages, poll_after_seconds: stage === 'queued' ? 5 : 2 };
    }
  }
}

function toStageState(index: number, current: number): 'done' | 'current' | 'ahead' {
  if (index === current) return 'current';
  return index < current ? 'done' : 'ahead';
}

const stageSentences: Readonly<Record<PublicProgress['stage'], string>> = {
  pending: 'Checking the repository for its newest commit.',
  queued: 'Waiting in the build queue.',
  cloning: 'Cloning the repository.',
  reviewing: 'Reviewing the source code.',
  building: 'Building the image.',
  deploying: 'Starting the app.',
  routing: 'Setting up the URL of the app.',
};

function describeProgress(progress: PublicProgress): string {
  // Nothing is built or started yet.
  if (progress.message?.startsWith(imageWait) === true) return endSentence(progress.message);
  const position = progress.position === undefined ? '' : ` Position: ${progress.position}.`;
  const waiting = progress.message === undefined ? '' : ` ${endSentence(progress.message)}`;
  return `${stageSentences[progress.stage]}${position}${waiting}`;
}

function endSentence(text: string): string {
  return /[.!?…]$/.test(text) ? text : `${text}.`;
}

function lowercaseFirst(text: string): string {
  return text.charAt(0).toLowerCase() + text.slice(1);
}

export function toPastRunView(
  entry: NonNullable<NonNullable<App['status']>['history']>[number],
): z.input<typeof pastRun> {
  const { number, commit, reason, result, message, release, releaseMessage, startedAt, finishedAt } = entry;
  return {
    ...{ number, commit, reason, result, message, release },
    release_message: releaseMessage,
    started_at: startedAt,
    finished_at: finishedAt,
  };
}

/** Undefined if the app always runs. */
export function toIdleView({ status }: App): IdleView | undefined {
  const { idle } = status ?? {};
  if (idle === undefined) return undefined;
  const { state, since, afterSeconds, wakes } = idle;
  return {
    state: states[state],
    since,
    idle_seconds: afterSeconds,
    ...(wakes === undefined ? {} : { wakes: { count: wakes.count, p50_ms: wakes.p50Ms, p95_ms: wakes.p95Ms } }),
  };
}

const states = { Awake: 'awake', Napping: 'napping', Asleep: 'asleep', Waking: 'waking' } as const;
