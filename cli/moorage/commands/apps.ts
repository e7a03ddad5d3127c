// Commands that show an app and act on it: status, open, releases, rollback, deploy, rebuild, restart, suspend, resume, rename,
// delete and restore.
import { execa } from 'execa';
import { z } from 'zod';
import { toHarmlessText } from '../../../lib/harmless-text.ts';
import { UsageError } from '../../../lib/command-line.ts';
import { Fault } from '../../submit/installation.ts';
import { type Api, anyAnswer, fetchStatus, resolveSlug, type SubmitStatus } from '../client.ts';
import { formatFields, formatTime } from '../output.ts';
import { type Command, defineCommand, type Session } from '../program.ts';

export const appArgument = {
  name: 'APP',
  optional: true,
  about: 'name of an app, OWNER/NAME or the address of its repository (default: the repository of this folder)',
} as const;
export const appOption = { type: 'string', short: 'a', value: 'APP', about: 'the same as the argument APP' } as const;
/** For commands whose arguments are something else. */
export const otherAppOption = { ...appOption, about: appArgument.about } as const;

/** Connects, and finds the app that a command is about. */
export async function chooseApp(
  session: Session,
  argument: string | undefined,
  option: string | undefined,
): Promise<{ readonly api: Api; readonly slug: string }> {
  const api = await session.connect();
  return { api, slug: await resolveSlug(api, { name: chooseName(argument, option), folder: session.folder }) };
}

/** The app as it was named: by an argument or by --app. @throws UsageError if they contradict each other */
export function chooseName(argument: string | undefined, option: string | undefined): string | undefined {
  if (argument !== undefined && option !== undefined && argument !== option)
    throw new UsageError('APP and --app name different apps');
  return argument ?? option;
}

// Looking

const statusDetails = z.looseObject({
  commit: z.string().optional(),
  newest_commit: z.string().optional(),
  since: z.string().optional(),
  stage: z.string().optional(),
  position: z.number().optional(),
  update: z.looseObject({ stage: z.string() }).optional(),
  warning: z.string().optional(),
  plan: z.looseObject({ strategy: z.string(), framework: z.string().optional() }).optional(),
  idle: z.looseObject({ state: z.string() }).optional(),
  components: z
    .array(z.looseObject({ name: z.string(), kind: z.string(), ready: z.boolean(), message: z.string().optional() }))
    .default([]),
});

export const status = defineCommand({
  name: 'status',
  group: 'Watch',
  summary: 'Show whether an app is live, in the pipeline or rejected, and why',
  arguments: [appArgument],
  options: { app: appOption },
  examples: ['status', 'status octo/hello', 'moorage status hello --json | jq -r .status'],
  run: async ({ values, positionals: [name] }, session) => {
    const { terminal, folder } = session;
    const found = await fetchStatus(await session.connect(), { name: chooseName(name, values.app), folder });
    terminal.printResult(found, () => formatStatus(found, session));
    return undefined;
  },
});

function formatStatus(found: SubmitStatus, { terminal }: Session): string[] {
  const details = statusDetails.parse(found);
  const { commit, newest_commit: newest, since, stage, position, update, plan, idle, components } = details;
  const color = { live: 'green', rejected: 'red' } as const;
  const word = found.status === 'live' || found.status === 'rejected' ? color[found.status] : 'yellow';
  const progress = stage ?? update?.stage;
  const rows = components.map(({ name, kind, ready, message = '' }) => ({
    name,
    kind,
    ready: ready ? 'yes' : 'no',
    message,
  }));
  return [
    `${terminal.style('bold', toHarmlessText(found.slug))}  ${terminal.style(word, toHarmlessText(found.status.replace('_', ' ')))}`,
    ...formatFields([
      ['url', found.url],
      ['repository', found.repo],
      ['commit', shortenCommit(commit)],
      ['newest', newest === commit ? undefined : shortenCommit(newest)],
      ['since', since === undefined ? undefined : formatTime(since)],
      [
        'stage',
        progress === undefined ? undefined : `${progress}${position === undefined ? '' : `, position ${position}`}`,
      ],
      [
        'plan',
        plan === undefined
          ? undefined
          : [plan.strategy, plan.framework].filter((part) => part !== undefined).join(', '),
      ],
      ['rest', idle?.state],
    ]).map((line) => `  ${line}`),
    '',
    toHarmlessText(found.message),
    ...(rows.length === 0 ? [] : ['', ...terminal.formatTable(rows, '')]),
  ];
}

const shortenCommit = (commit: string | undefined): string | undefined => commit?.slice(0, 12);

export const open = defineCommand({
  name: 'open',
  group: 'Watch',
  summary: 'Open the address of an app in a browser',
  details: ['Without a terminal or a browser, the address is printed.'],
  arguments: [appArgument],
  options: { app: appOption },
  examples: ['open', 'open octo/hello'],
  run: async ({ values, positionals: [name] }, session) => {
    const { terminal, folder, environment } = session;
    const { url } = await fetchStatus(await session.connect(), { name: chooseName(name, values.app), folder });
    if (!/^https?:\/\//.test(url)) throw new Fault('the address of the app is not one of a web page');
    terminal.printResult({ url }, () => toHarmlessText(url));
    if (!terminal.isOutputTerminal || terminal.isJson) return undefined;
    const program = process.platform === 'darwin' ? 'open' : 'xdg-open';
    await execa(program, [url], { env: environment, extendEnv: false, reject: false, stdio: 'ignore' });
    return undefined;
  },
});

const ownApp = z.looseObject({
  slug: z.string(),
  releases: z.array(
    z.looseObject({
      commit: z.string(),
      ready_at: z.string(),
      good: z.boolean(),
      crashed_at: z.string().optional(),
      serving: z.boolean(),
      pinned: z.boolean().default(false),
    }),
  ),
});

export const releases = defineCommand({
  name: 'releases',
  group: 'Run',
  summary: 'List the releases that are kept, the newest first',
  arguments: [appArgument],
  options: { app: appOption },
  examples: ['releases', 'moorage releases octo/hello --json | jq -r .releases[].commit'],
  run: async ({ values, positionals: [name] }, session) => {
    const { api, slug } = await chooseApp(session, name, values.app);
    const app = await api.call({ path: `/api/apps/${slug}`, schema: ownApp, feature: 'the releases of apps' });
    const { terminal } = session;
    const rows = app.releases.map(({ commit, ready_at: ready, good, crashed_at: crashed, serving, pinned }) => ({
      commit: commit.slice(0, 12),
      ready: formatTime(ready),
      state: [
        serving ? 'serving' : '',
        pinned ? 'pinned' : '',
        good ? 'good' : '',
        crashed === undefined ? '' : `crashed ${formatTime(crashed)}`,
      ]
        .filter((part) => part !== '')
        .join(', '),
    }));
    terminal.printResult({ slug: app.slug, releases: app.releases }, () =>
      terminal.formatTable(rows, 'No release is kept.'),
    );
    return undefined;
  },
});

const ownPreviews = z.looseObject({
  enabled: z.boolean(),
  previews: z.array(
    z.looseObject({
      label: z.string(),
      commit: z.string().optional(),
      status: z.string(),
      message: z.string(),
      url: z.string(),
      serving_since: z.string().optional(),
      asleep: z.boolean(),
      wakes_in_ms: z.number().optional(),
    }),
  ),
});

export const previews = defineCommand({
  name: 'previews',
  group: 'Run',
  summary: 'List the previews of pull requests and branches',
  details: ['`previews` in moorage.yaml of the default branch switches them on.'],
  arguments: [appArgument],
  options: { app: appOption },
  examples: ['previews', 'moorage previews octo/hello --json | jq -r .previews[].url'],
  run: async ({ values, positionals: [name] }, session) => {
    const { api, slug } = await chooseApp(session, name, values.app);
    const path = `/api/apps/${slug}/previews`;
    const found = await api.call({ path, schema: ownPreviews, feature: 'previews' });
    const { terminal } = session;
    const rows = found.previews.map((each) => ({
      shows: toHarmlessText(each.label),
      commit: each.commit?.slice(0, 12) ?? '-',
      state: each.asleep ? 'asleep' : each.status,
      started: each.serving_since === undefined ? '-' : formatTime(each.serving_since),
      'wakes in': each.wakes_in_ms === undefined ? '-' : `${(each.wakes_in_ms / 1_000).toFixed(1)} s`,
      'url or reason': toHarmlessText(each.status === 'rejected' ? each.message : each.url),
    }));
    const none = found.enabled
      ? 'There is no pull request or branch to show.'
      : 'Previews are off. Add `previews: {pullRequests: true}` to moorage.yaml on the default branch.';
    terminal.printResult(found, () => terminal.formatTable(rows, none));
    return undefined;
  },
});

// Acting

export const rollback = defineCommand({
  name: 'rollback',
  group: 'Run',
  summary: 'Run the release of an earlier commit',
  details: ['No newer commit is deployed until you call `moorage deploy`.'],
  arguments: [{ name: 'COMMIT', about: 'a commit of `moorage releases`, or at least its first 7 digits' }],
  options: { app: otherAppOption },
  examples: ['rollback 3f2a91c', 'rollback 3f2a91c --app octo/hello'],
  run: async ({ values, positionals: [commit = ''] }, session) => {
    if (!/^[0-9a-f]{7,64}$/.test(commit))
      throw new UsageError('COMMIT must be the ID of a commit, or at least its first 7 digits');
    const { api, slug } = await chooseApp(session, undefined, values.app);
    return perform(session, api, {
      slug,
      action: 'rollback',
      feature: 'rollbacks',
      body: { commit },
    });
  },
});

export const deploy = defineCommand({
  name: 'deploy',
  group: 'Run',
  summary: 'Deploy the newest commit, also after a rollback',
  arguments: [appArgument],
  options: { app: appOption },
  examples: ['deploy', 'deploy octo/hello'],
  run: async ({ values, positionals: [name] }, session) => {
    const { api, slug } = await chooseApp(session, name, values.app);
    return perform(session, api, { slug, action: 'deploy', feature: 'deployments on request' });
  },
});

export const rebuild = defineCommand({
  name: 'rebuild',
  group: 'Run',
  summary: 'Build the newest commit again',
  arguments: [appArgument],
  options: {
    'no-cache': {
      type: 'boolean',
      default: false,
      about: 'run every step of the build, and take none from an earlier one',
    },
    app: appOption,
  },
  examples: ['rebuild', 'rebuild octo/hello --no-cache'],
  run: async ({ values, positionals: [name] }, session) => {
    const { api, slug } = await chooseApp(session, name, values.app);
    return perform(session, api, {
      slug,
      action: 'rebuild',
      feature: 'rebuilds',
      body: { cache: !values['no-cache'] },
    });
  },
});

/** Commands that send no more than the name of the app. */
function defineAction(action: 'restart' | 'suspend' | 'resume' | 'restore', summary: string, details: string): Command {
  return defineCommand({
    name: action,
    group: 'Run',
    summary,
    details: [details],
    arguments: [appArgument],
    options: { app: appOption },
    examples: [action, `${action} octo/hello`],
    run: async ({ values, positionals: [name] }, session) => {
      const { api, slug } = await chooseApp(session, name, values.app);
      return perform(session, api, { slug, action, feature: `the action ${action}` });
    },
  });
}

export const restart = defineAction(
  'restart',
  'Restart an app with the same release',
  'The old process serves until the new one is ready. The requests to an app with a volume wait in between.',
);
export const suspend = defineAction(
  'suspend',
  'Stop an app',
  'Data and address are kept. `moorage resume` starts it again.',
);
export const resume = defineAction(
  'resume',
  'Start an app that was suspended',
  'A newer commit is built first, if there is one.',
);
export const restore = defineAction(
  'restore',
  'Take back the deletion of an app',
  'This is possible until the date that `moorage delete` names.',
);

const renamed = z.looseObject({ slug: z.string(), former: z.string(), url: z.string(), message: z.string() });

export const rename = defineCommand({
  name: 'rename',
  group: 'Run',
  summary: 'Give an app another name, and so another address',
  details: [
    'Data, releases, secrets, tokens, domains and records stay. The former name leads to the new one for 90 days, and nobody else gets it in that time.',
  ],
  arguments: [{ name: 'NAME', about: 'the new name: lower-case letters, digits and hyphens, at most 40' }],
  options: { app: otherAppOption },
  examples: ['rename my-app', 'rename my-app --app octo/hello'],
  run: async ({ values, positionals: [name = ''] }, session) => {
    const { api, slug } = await chooseApp(session, undefined, values.app);
    const answer = await api.call({
      ...{ method: 'POST', path: `/api/apps/${slug}/rename`, body: { slug: name }, schema: renamed },
      feature: 'renaming apps',
    });
    session.terminal.printResult(answer, () => [toHarmlessText(answer.url), toHarmlessText(answer.message)]);
    return undefined;
  },
});

export const remove = defineCommand({
  name: 'delete',
  group: 'Run',
  summary: 'Delete an app, after a time in which it can be restored',
  details: ['Asks for the name of the app. Programs pass --yes.'],
  arguments: [appArgument],
  options: {
    yes: { type: 'boolean', short: 'y', default: false, about: 'do not ask' },
    app: appOption,
  },
  examples: ['delete octo/hello', 'delete hello --yes'],
  run: async ({ values, positionals: [name] }, session) => {
    const { terminal } = session;
    if (!values.yes && !terminal.isInteractive)
      throw new UsageError('there is no terminal to confirm the deletion: pass --yes');
    const { api, slug } = await chooseApp(session, name, values.app);
    if (!values.yes && (await terminal.ask(`Enter ${slug} to delete it:`)) !== slug)
      throw new Fault('the name is another one: nothing was deleted');
    return perform(session, api, { slug, feature: 'deletions' });
  },
});

interface Action {
  readonly slug: string;
  /** Last part of the path; absent to delete the app. */
  readonly action?: string;
  readonly feature: string;
  readonly body?: unknown;
}

/** Sends an action and prints what the API answers to it. */
async function perform({ terminal }: Session, api: Api, { slug, action, feature, body }: Action): Promise<undefined> {
  const answer = await api.call({
    method: action === undefined ? 'DELETE' : 'POST',
    path: `/api/apps/${slug}${action === undefined ? '' : `/${action}`}`,
    ...(body === undefined ? {} : { body }),
    schema: anyAnswer,
    feature,
  });
  terminal.printResult(answer, () => toHarmlessText(answer.message ?? `${slug}: ${action ?? 'delete'} was accepted.`));
  return undefined;
}
