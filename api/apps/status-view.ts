// Tells in JSON, and in a sentence, how a submitted repository stands.
import { z } from 'zod';
import { finding, plan } from '../../crds/hosted-app.ts';
import { publicStatus, type PublicProgress, type PublicReason, type PublicStatus } from '../../crds/public-status.ts';
import { repositoryUrl, type App } from './hosted-apps.ts';

/** Stages of the pipeline in their order; an app that passed the last one is live. */
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
  position: z.int().optional().describe('Place in the queue of builds, from 1.'),
  message: z.string().optional(),
});

const past = z.object({
  number: z.int(),
  commit: z.string(),
  reason: z.string().describe('Why it was built.'),
  result: z.string(),
  message: z.string().optional(),
  started_at: z.string().optional(),
  finished_at: z.string().optional(),
});

/** Answer of the submit-status, and with `created` and `polled` of the submission itself. */
export const statusView = z.looseObject({
  status: z.enum(['live', 'in_pipeline', 'rejected']),
  message: z.string().describe('How it stands and what comes next, in a sentence.'),
  repo: z.string().describe('Address of the repository.'),
  slug: z.string().describe('Name of the app.'),
  url: z.string().describe('Where the app answers, or will once it is live.'),
  status_url: z.string(),
  log_url: z.string().describe('The build log as server-sent events, or as plain text with Accept: text/plain.'),
  commit: z.string().optional().describe('live: the commit that serves; else the newest commit that was looked at.'),
  newest_commit: z.string().optional().describe('Newest commit of the repository that was seen.'),
  since: z.string().optional().describe('RFC 3339, since when it has been so.'),
  stage: z.enum(stageOrder).optional().describe('Where it is, while in_pipeline.'),
  position: z.int().optional().describe('Place in the queue of builds, from 1, while queued.'),
  stages: z
    .array(z.object({ stage: z.enum(stageOrder), state: z.enum(['done', 'current', 'ahead']) }))
    .optional()
    .describe('All stages and how far it has come, while in_pipeline.'),
  reason: z.string().optional().describe('Why it was rejected, in a sentence.'),
  rejection: rejection.optional().describe('The same in parts: rule, file, line, message, fix, log.'),
  update: progress.optional().describe('A newer commit on its way while the app is live.'),
  problem: rejection.optional().describe('Why a newer commit was not taken while the app is live.'),
  warning: z.string().optional().describe('What is amiss while the app is live, like errors on /.'),
  plan: plan.optional().describe('How the image is made, and why so.'),
  findings: z.array(finding).optional().describe('What the review found, warnings included.'),
  settings: z
    .array(z.object({ field: z.string(), value: z.string(), from: z.string() }))
    .optional()
    .describe('Each field that moorage.yaml of the repository sets, what holds for it, and whose word that is.'),
  history: z.array(past).optional().describe('Past pipelines, newest first.'),
  poll_after_seconds: z.int().optional().describe('Ask again after this; absent when nothing is under way.'),
});
export type StatusView = z.input<typeof statusView>;

/** Where things are, as links are written. */
export interface Places {
  /** Like https://moorage.localhost */
  readonly baseUrl: string;
  /** Git host that need not be named in a link. */
  readonly defaultHost: string | undefined;
}

/** Makes the view of an app. */
export function viewStatus(app: App, places: Places): StatusView {
  const status = publicStatus(app);
  const { plan: made, findings, history, effective } = app.status ?? {};
  return {
    status: status.status,
    message: sentence(status, appUrl(app, places.baseUrl)),
    ...addresses(app, places),
    ...details(status),
    newest_commit: app.status?.source?.commit,
    plan: made,
    findings: findings?.length === 0 ? undefined : findings,
    settings: effective,
    history: history?.map(pastView),
  };
}

/** How an app stands, in a sentence. */
export function sentence(status: PublicStatus, url: string): string {
  if (status.status === 'rejected') return `${reasonSentence(status.reason)} ${stopped(status.reason.fix)}`;
  if (status.status === 'in_pipeline') return `${progressSentence(status)} It will answer at ${url}.`;
  if (status.update !== undefined)
    return `It answers at ${url}. A newer commit is on its way: ${lowered(progressSentence(status.update))}`;
  if (status.problem !== undefined)
    return `It answers at ${url}, by an older commit; the newer one was not taken: ${reasonSentence(status.problem)} ${stopped(status.problem.fix)}`;
  return status.warning === undefined
    ? `It answers at ${url}.`
    : `It is live at ${url}, but ${stopped(status.warning)}`;
}

/** A reason with its place, in a sentence. */
export function reasonSentence(reason: PublicReason): string {
  const line = reason.line === undefined ? '' : `:${reason.line}`;
  const place = reason.file === undefined ? '' : `${reason.file}${line}: `;
  return stopped(`${place}${reason.message}`);
}

function addresses(
  app: App,
  { baseUrl, defaultHost }: Places,
): Pick<StatusView, 'repo' | 'slug' | 'url' | 'status_url' | 'log_url'> {
  const repo = repositoryUrl(app);
  const { host, pathname } = new URL(repo);
  const statusUrl = `${baseUrl}/api/submit-status${pathname}`;
  const query = host === defaultHost ? '' : `?host=${encodeURIComponent(host)}`;
  return {
    repo,
    slug: app.metadata.name,
    url: appUrl(app, baseUrl),
    status_url: `${statusUrl}${query}`,
    log_url: `${statusUrl}/log${query}`,
  };
}

function appUrl(app: App, baseUrl: string): string {
  if (app.status?.url !== undefined) return app.status.url;
  const url = new URL(baseUrl);
  url.hostname = `${app.metadata.name}.${url.hostname}`;
  return url.origin;
}

function details(status: PublicStatus): Partial<StatusView> {
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
      return { commit, since, reason: reasonSentence(status.reason), rejection: status.reason };
    case 'in_pipeline': {
      const { stage, position } = status;
      const current = stageOrder.indexOf(stage);
      const stages = stageOrder.map((name, index) => ({ stage: name, state: stateOf(index, current) }));
      return { commit, since, stage, position, stages, poll_after_seconds: stage === 'queued' ? 5 : 2 };
    }
  }
}

function stateOf(index: number, current: number): 'done' | 'current' | 'ahead' {
  if (index === current) return 'current';
  return index < current ? 'done' : 'ahead';
}

const doing: Readonly<Record<PublicProgress['stage'], string>> = {
  pending: 'The repository is being asked for its newest commit.',
  queued: 'It waits in the queue of builds.',
  cloning: 'The source is being fetched.',
  reviewing: 'The source is being reviewed.',
  building: 'The image is being built.',
  deploying: 'The app is being started.',
  routing: 'Its address is being opened.',
};

function progressSentence(progress: PublicProgress): string {
  const place = progress.position === undefined ? '' : ` Its place is ${progress.position}.`;
  const waiting = progress.message === undefined ? '' : ` ${stopped(progress.message)}`;
  return `${doing[progress.stage]}${place}${waiting}`;
}

function stopped(text: string): string {
  return /[.!?…]$/.test(text) ? text : `${text}.`;
}

function lowered(text: string): string {
  return text.charAt(0).toLowerCase() + text.slice(1);
}

function pastView(entry: NonNullable<NonNullable<App['status']>['history']>[number]): z.input<typeof past> {
  const { number, commit, reason, result, message, startedAt, finishedAt } = entry;
  return { number, commit, reason, result, message, started_at: startedAt, finished_at: finishedAt };
}
