// Commands for the tokens of an app: create, list and revoke. A token is for a program such as CI, or for someone who only reads.
import { z } from 'zod';
import { toHarmlessText } from '../../../lib/harmless-text.ts';
import { parseWholeNumber, UsageError } from '../../../lib/command-line.ts';
import { type Api, anyAnswer } from '../client.ts';
import { formatTime } from '../output.ts';
import { defineCommand } from '../program.ts';
import { appArgument, appOption, chooseApp, otherAppOption } from './apps.ts';

const feature = 'tokens';
const created = z.looseObject({ id: z.string(), token: z.string(), message: z.string() });

export const tokensCreate = defineCommand({
  name: 'tokens create',
  group: 'Keys and records',
  summary: 'Make a token for an app, for CI or for someone who only reads',
  details: [
    'The token is printed once, alone on standard output, so that it can be piped. Use it as MOORAGE_KEY. It opens this app alone, and ends at its time, with `moorage tokens revoke`, or with the line of your key in the repository.',
    'Scopes: read (the private side of the app), logs, deploy (also rebuild and rollback), control (restart, suspend, resume), secrets, settings. Without --scope it has read and logs, which change nothing. No token makes tokens or deletes the app.',
  ],
  arguments: [{ name: 'NAME', about: 'what the token is for, as the audit log shows it' }],
  options: {
    scope: { type: 'string', multiple: true, value: 'SCOPE', about: 'what it may do; repeat it, or use commas' },
    days: { type: 'string', value: 'N', about: 'days until it ends, from 1 to 365' },
    app: otherAppOption,
  },
  examples: [
    "tokens create 'GitHub Actions' --scope deploy,logs --days 90 --app octo/hello",
    'moorage tokens create viewer --days 7 | pbcopy',
  ],
  run: async ({ values, positionals: [name = ''] }, session) => {
    if (values.days === undefined) throw new UsageError('--days is required: a token ends after 1 to 365 days');
    const days = parseWholeNumber('--days', values.days, { maximum: 365 });
    const scopes = (values.scope ?? []).flatMap((each) => each.split(',')).map((each) => each.trim());
    const { api, slug } = await chooseApp(session, undefined, values.app);
    const made = await api.call({
      method: 'POST',
      path: `/api/apps/${slug}/tokens`,
      body: { name, expires_in_days: days, ...(scopes.length === 0 ? {} : { scopes }) },
      schema: created,
      feature,
    });
    const { terminal } = session;
    terminal.printResult(made, () => toHarmlessText(made.token));
    if (!terminal.isJson) terminal.printNote(`${toHarmlessText(made.message)} Its id is ${toHarmlessText(made.id)}.`);
    return undefined;
  },
});

const list = z.looseObject({
  tokens: z.array(
    z.looseObject({
      id: z.string(),
      name: z.string(),
      scopes: z.array(z.string()),
      state: z.string(),
      expires_at: z.string(),
      last_used_at: z.string().optional(),
    }),
  ),
});

export const tokensList = defineCommand({
  name: 'tokens list',
  group: 'Keys and records',
  summary: 'List the tokens of an app, with their scopes, ends and last uses',
  arguments: [appArgument],
  options: { app: appOption },
  examples: ['tokens list', 'tokens list octo/hello --json'],
  run: async ({ values, positionals: [name] }, session) => {
    const { api, slug } = await chooseApp(session, name, values.app);
    const page = await fetchTokens(api, slug);
    const rows = page.tokens.map((token) => ({
      id: token.id,
      name: token.name,
      scopes: token.scopes.join(','),
      state: token.state,
      expires: formatTime(token.expires_at),
      'last used': token.last_used_at === undefined ? 'never' : formatTime(token.last_used_at),
    }));
    session.terminal.printResult(page, () => session.terminal.formatTable(rows, 'The app has no tokens.'));
    return undefined;
  },
});

async function fetchTokens(api: Api, slug: string): Promise<z.output<typeof list>> {
  return api.call({ path: `/api/apps/${slug}/tokens`, schema: list, feature });
}

export const tokensRevoke = defineCommand({
  name: 'tokens revoke',
  group: 'Keys and records',
  summary: 'End a token of an app now',
  arguments: [{ name: 'TOKEN', about: 'id of the token, or its name if only one that has not ended is called so' }],
  options: { app: otherAppOption },
  examples: ['tokens revoke 1f2e3d4c5b6a', "tokens revoke 'GitHub Actions' --app octo/hello"],
  run: async ({ values, positionals: [wanted = ''] }, session) => {
    const { api, slug } = await chooseApp(session, undefined, values.app);
    const id = /^[0-9a-f]{12}$/.test(wanted) ? wanted : await findToken(api, slug, wanted);
    const done = await api.call({
      method: 'DELETE',
      path: `/api/apps/${slug}/tokens/${id}`,
      schema: anyAnswer,
      feature,
    });
    session.terminal.printResult(done, () => toHarmlessText(done.message ?? 'Revoked.'));
    return undefined;
  },
});

/** The id of the active token of a name. @throws UsageError if there is none, or if there are several */
async function findToken(api: Api, slug: string, name: string): Promise<string> {
  const { tokens } = await fetchTokens(api, slug);
  const [found, other] = tokens.filter((token) => token.name === name && token.state === 'active');
  if (found === undefined) throw new UsageError('no active token has this id or name: see `moorage tokens list`');
  if (other !== undefined) throw new UsageError('several tokens have this name: use an id of `moorage tokens list`');
  // It becomes part of a path.
  return encodeURIComponent(found.id);
}
