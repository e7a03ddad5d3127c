// Commands for keys and records: login, logout, the push hook, the audit log, and the export of an app. Tokens are in tokens.ts.
import { readFile, writeFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import { z } from 'zod';
import { toHarmlessText } from '../../../lib/harmless-text.ts';
import { parseWholeNumber, UsageError } from '../../../lib/command-line.ts';
import { formatAuthorKeyLine, isAuthorToken, isAuthorKey, ownershipFile } from '../../../lib/ownership-file.ts';
import { parseAcceptedRepository } from '../../../lib/repository.ts';
import { Fault } from '../../submit/installation.ts';
import { type Api, type AppChoice, anyAnswer, fetchStatus, resolveSlug, type SubmitStatus } from '../client.ts';
import { normalizeAddress, readErrorCode } from '../config.ts';
import { formatFields, formatTime, formatValue, readProblemSlug } from '../output.ts';
import { defineCommand, type Session } from '../program.ts';
import { appArgument, appOption, chooseApp } from './apps.ts';

const issuedKey = z.looseObject({ key: z.string(), file: z.string(), line: z.string(), repository: z.string() });

const noArgument = 'a key is never an argument, because others can see it: use --key-file, or enter it when asked';

export const login = defineCommand({
  name: 'login',
  group: 'Get started',
  summary: 'Store an author key or a token for an installation, or get a new key',
  details: [
    'A key opens an app once its line is in .moorage-owner at the top of the default branch. Without a key, this gets one for APP, stores it, and prints the line to commit. The same key opens all of your apps: `moorage login` prints the line for each. A token (mat-…), which an author made, opens one app and is stored the same way.',
    'The key is read from a file, from standard input or from a hidden prompt, never from the command line, where others on this machine could see it. It is stored in moorage/config.json below $XDG_CONFIG_HOME (default: ~/.config), with mode 0600. The variable MOORAGE_KEY takes precedence over it.',
  ],
  arguments: [appArgument],
  options: {
    'key-file': { type: 'string', value: 'FILE', about: 'read the key from a file; - is standard input' },
    'new-key': { type: 'boolean', default: false, about: 'get a new key for APP and ask for none' },
    app: appOption,
  },
  excess: noArgument,
  examples: [
    'login octo/hello --api https://moorage.example.org',
    'login --api https://moorage.example.org --key-file ~/moorage.key',
    'moorage login < ~/moorage.key',
  ],
  run: async ({ values, positionals: [name] }, session) => {
    // A key here was visible to others already; it must not be repeated in a message, too.
    if ([name ?? '', values.app ?? ''].some(isKey)) throw new UsageError(noArgument);
    const api = await session.connect({ api: await askForAddress(session) });
    const key = values['new-key'] ? '' : await readKey(values['key-file'], session);
    const app = { name: name ?? values.app, folder: session.folder };
    if (key !== '') await keepKey(key, api, app, session);
    else await prepareKey(api, app, values['new-key'], session);
    return undefined;
  },
});

/** The address that a person enters; undefined if it is known without them. */
async function askForAddress({ common, terminal, config, environment }: Session): Promise<string | undefined> {
  if (common.api !== undefined || (environment['MOORAGE_API'] ?? '') !== '' || !terminal.isInteractive)
    return common.api;
  const { current } = await config.read();
  const known = current ?? (await config.readLocal())?.baseUrl;
  const answer = await terminal.ask(`Address of the installation${known === undefined ? ':' : ` [${known}]:`}`);
  return answer === '' ? known : answer;
}

/** The author's key; empty if a new one is wanted. */
async function readKey(file: string | undefined, { terminal, folder }: Session): Promise<string> {
  const key =
    file === undefined || file === '-'
      ? await terminal.readSecret('Author key (empty for a new one):')
      : await readFile(resolve(folder, file), 'utf8').catch(() => {
          throw new UsageError(`${file} cannot be read`);
        });
  const trimmed = key.trim();
  if (trimmed !== '' && !isKey(trimmed))
    throw new Fault('this is neither an author key nor a token: they begin with mak- or mat- and have 47 characters');
  return trimmed;
}

function isKey(text: string): boolean {
  return isAuthorKey(text) || isAuthorToken(text);
}

/** Stores a key that the author has, once the installation answered to it. */
async function keepKey(key: string, api: Api, app: AppChoice, session: Session): Promise<void> {
  const { terminal, config } = session;
  const { address } = api.target;
  const withKey = await session.connect({ api: address, key });
  const slug = app.name === undefined ? undefined : await resolveSlug(withKey, app);
  const isOpen = await hasAccess(withKey, slug);
  if (!isOpen && isAuthorToken(key)) throw new Fault(`the token does not open ${slug}: ask its author for another one`);
  await recordKey(key, api, session);
  if (!isOpen) {
    await prepareKey(api, app, false, session);
    return;
  }
  terminal.printResult({ installation: address, app: slug, stored: config.path }, () => [
    `Stored the key for ${address} in ${config.path}.`,
    ...(slug === undefined ? [] : [`It opens ${slug}.`]),
  ]);
}

/** Whether the key opens the app; without an app, whether the installation answers. */
async function hasAccess(api: Api, slug: string | undefined): Promise<boolean> {
  if (slug === undefined) {
    await api.call({ path: '/api/projects', query: { limit: '1' }, schema: anyAnswer, feature: 'the list of apps' });
    return true;
  }
  try {
    await api.call({ path: `/api/apps/${slug}`, schema: anyAnswer, feature: 'author keys' });
    return true;
  } catch (error) {
    const problem = error instanceof Fault && error.refusal !== undefined ? readProblemSlug(error.refusal) : undefined;
    if (problem === 'app-private') return false;
    // A token that may not read is a token of the app.
    if (problem === 'missing-scope') return true;
    throw error;
  }
}

async function recordKey(key: string, { target }: Api, { config }: Session): Promise<void> {
  await config.write(target.address, {
    key,
    ...(target.authority === undefined ? {} : { caFile: target.authority.path }),
  });
}

/** Prints the line that opens an app to the stored key, or to a new one. */
async function prepareKey(api: Api, app: AppChoice, isNew: boolean, session: Session): Promise<void> {
  const { terminal, config } = session;
  const { address } = api.target;
  const stored = isNew ? undefined : (await config.read()).installations[address]?.key;
  // A token has no line.
  const known = stored !== undefined && isAuthorKey(stored) ? stored : undefined;
  const { slug, repo, line } =
    known === undefined ? await issueKey(api, app, session) : deriveLine(known, await fetchStatus(api, app));
  const document = {
    installation: address,
    app: slug,
    repository: repo,
    file: ownershipFile,
    line,
    stored: config.path,
  };
  terminal.printResult(document, () => [
    known !== undefined
      ? `Your key for ${address} is in ${config.path}.`
      : `Stored a new key for ${address} in ${config.path}.`,
    `Commit this line to ${ownershipFile} at the top of the default branch of ${toHarmlessText(repo)}:`,
    '',
    `  ${toHarmlessText(line)}`,
    '',
    'The key opens the app once the commit was reviewed:',
    '',
    `  echo '${toHarmlessText(line).replaceAll("'", '')}' >> ${ownershipFile}`,
    `  git add ${ownershipFile} && git commit -m 'Let me run this app' && git push`,
  ]);
}

/** An app with the line that opens it. */
interface KeyLine {
  readonly slug: string;
  readonly repo: string;
  readonly line: string;
}

/** Gets a new key and stores it. */
async function issueKey(api: Api, app: AppChoice, session: Session): Promise<KeyLine> {
  const slug = await resolveSlug(api, app);
  const { key, line, repository } = await api.call({
    method: 'POST',
    path: `/api/apps/${slug}/keys`,
    schema: issuedKey,
    feature: 'author keys',
  });
  await recordKey(key, api, session);
  return { slug, repo: repository, line };
}

/** The line for one more app of a key that is stored. */
function deriveLine(key: string, { slug, repo }: SubmitStatus): KeyLine {
  const { host, owner, name } = parseAcceptedRepository(repo);
  return { slug, repo, line: formatAuthorKeyLine(key, `${host}/${owner}/${name}`) };
}

export const logout = defineCommand({
  name: 'logout',
  group: 'Get started',
  summary: 'Remove the stored key of an installation',
  details: ['The key stays valid. To revoke it, remove its line from .moorage-owner and push.'],
  examples: ['logout', 'logout --api https://moorage.example.org'],
  run: async (_input, { terminal, config, common, environment }) => {
    const { current, installations } = await config.read();
    const variable = environment['MOORAGE_API'] ?? '';
    const named = common.api ?? (variable === '' ? current : variable);
    const address = named === undefined ? undefined : normalizeAddress(named);
    const isKnown = address !== undefined && installations[address] !== undefined;
    if (isKnown) await config.write(address, undefined);
    terminal.printResult({ installation: address, removed: isKnown }, () =>
      isKnown
        ? `Removed the key for ${address}. To revoke it, remove its line from ${ownershipFile} and push.`
        : `No key is stored for ${address ?? 'any installation'}.`,
    );
    return undefined;
  },
});

const pushHook = z.looseObject({
  url: z.string(),
  secret: z.string(),
  previous_valid_until: z.string().optional(),
  setup: z.record(z.string(), z.string()).default({}),
});

export const hook = defineCommand({
  name: 'hook',
  group: 'Keys and records',
  summary: 'Get or replace the secret of the push hook for the git host',
  details: [
    'With the hook, the git host reports each push, and a new commit is built within seconds.',
    'With --replace, there is a new secret. The old one stays valid for 24 hours, unless --end-previous ends it immediately. Alone, --end-previous ends the old secret after a replacement.',
  ],
  arguments: [appArgument],
  options: {
    replace: { type: 'boolean', default: false, about: 'make a new secret' },
    'end-previous': { type: 'boolean', default: false, about: 'end the old secret immediately' },
    app: appOption,
  },
  examples: ['hook', 'hook octo/hello', 'hook octo/hello --replace'],
  run: async ({ values, positionals: [name] }, session) => {
    const { api, slug } = await chooseApp(session, name, values.app);
    const path = `/api/apps/${slug}/push-hook-secret`;
    const feature = 'push hooks';
    if (values['end-previous'] && !values.replace) {
      const ended = await api.call({ method: 'DELETE', path: `${path}/previous`, schema: anyAnswer, feature });
      session.terminal.printResult(ended, () => toHarmlessText(ended.message ?? 'The previous secret is ended.'));
      return undefined;
    }
    const request = values.replace
      ? { path: `${path}/replace`, body: { end_previous: values['end-previous'] } }
      : { path };
    const made = await api.call({ method: 'POST', ...request, schema: pushHook, feature });
    session.terminal.printResult(made, () => [
      ...formatFields([
        ['url', made.url],
        ['secret', made.secret],
        ['previous valid until', made.previous_valid_until],
      ]),
      '',
      'Where to enter them:',
      ...formatFields(Object.entries(made.setup)).map((line) => `  ${line}`),
    ]);
    return undefined;
  },
});

const auditPage = z.looseObject({
  entries: z.array(
    z.looseObject({
      at: z.string(),
      actor: z.string(),
      actor_name: z.string().optional(),
      action: z.string(),
      detail: z.record(z.string(), z.unknown()).default({}),
      outcome: z.string(),
      request: z.string(),
    }),
  ),
  next: z.string().optional(),
});

export const audit = defineCommand({
  name: 'audit',
  group: 'Keys and records',
  summary: 'List what was done with an app, when, and with which key or token',
  arguments: [appArgument],
  options: {
    limit: { type: 'string', value: 'N', about: 'entries, from 1 to 200 (default: 50)' },
    before: { type: 'string', value: 'ID', about: 'only entries that are older than this one' },
    app: appOption,
  },
  examples: ['audit', 'audit octo/hello --limit 10', 'moorage audit hello --json | jq .entries[0]'],
  run: async ({ values, positionals: [name] }, session) => {
    const limit = values.limit === undefined ? undefined : parseWholeNumber('--limit', values.limit, { maximum: 200 });
    const { api, slug } = await chooseApp(session, name, values.app);
    const page = await api.call({
      path: `/api/apps/${slug}/audit`,
      query: { limit: limit?.toString(), before: values.before },
      schema: auditPage,
      feature: 'an audit log',
    });
    const { terminal } = session;
    const rows = page.entries.map(({ at, action, outcome, actor, actor_name: actorName, detail, request }) => ({
      time: formatTime(at),
      action,
      outcome,
      key: actorName === undefined ? actor : `${actorName} (${actor})`,
      detail: Object.entries(detail)
        .map(([field, value]) => `${field}=${formatValue(value)}`)
        .join(' '),
      request,
    }));
    terminal.printResult(page, () => terminal.formatTable(rows, 'Nothing was done with this app through the API.'));
    if (page.next !== undefined && !terminal.isJson)
      terminal.printNote(`Older entries: moorage audit ${slug} --before ${toHarmlessText(page.next)}`);
    return undefined;
  },
});

export const exportApp = defineCommand({
  name: 'export',
  group: 'Keys and records',
  summary: 'Download the record of an app',
  details: [
    'A JSON document with its settings, the names of its secrets, its releases, its history and its audit log. It has no values of secrets and no files of volumes.',
  ],
  arguments: [appArgument],
  options: {
    output: { type: 'string', short: 'o', value: 'FILE', about: 'write to this file instead of standard output' },
    app: appOption,
  },
  examples: ['export octo/hello -o hello.json', 'moorage export hello | jq .releases'],
  run: async ({ values, positionals: [name] }, session) => {
    const { api, slug } = await chooseApp(session, name, values.app);
    const response = await api.download({ path: `/api/apps/${slug}/export`, feature: 'exports' });
    const { terminal, folder } = session;
    if (values.output === undefined) {
      for await (const chunk of response.body ?? []) terminal.writeBytes(chunk as Uint8Array);
      return undefined;
    }
    const path = resolve(folder, values.output);
    // An export may hold what only the author may see.
    await writeFile(path, response.body ?? '', { mode: 0o600 }).catch((error: unknown) => {
      throw new Fault(`${path} cannot be written (${readErrorCode(error)})`);
    });
    terminal.printResult({ app: slug, file: path }, () => `Wrote ${path}.`);
    return undefined;
  },
});
