// Commands for who may visit an app: everybody, holders of an access key, or those who know a password.
import { randomBytes } from 'node:crypto';
import { z } from 'zod';
import { toHarmlessText } from '../../../lib/harmless-text.ts';
import { UsageError } from '../../../lib/command-line.ts';
import { type Api, anyAnswer } from '../client.ts';
import { formatFields, formatTime } from '../output.ts';
import { defineCommand, type Session } from '../program.ts';
import { appArgument, appOption, chooseApp, otherAppOption } from './apps.ts';

const modes = ['public', 'key', 'password'] as const;
const feature = 'protected apps';

const accessAnswer = z.looseObject({
  access: z.string(),
  enforced: z.boolean().default(false),
  keys: z.array(z.looseObject({ name: z.string(), created_at: z.string() })).default([]),
  message: z.string().optional(),
});
type AccessAnswer = z.output<typeof accessAnswer>;

const createdKey = z.looseObject({ name: z.string(), key: z.string(), message: z.string() });

async function requestAccess(api: Api, slug: string, change?: object): Promise<AccessAnswer> {
  const request = { path: `/api/apps/${slug}/access`, schema: accessAnswer, feature };
  return api.call(change === undefined ? request : { ...request, method: 'PUT', body: change });
}

export const access = defineCommand({
  name: 'access',
  group: 'Settings',
  summary: 'Show or set who may visit an app',
  details: [
    'public: anyone. key: only with an access key, which `moorage access add` creates. password: with the password or an access key. With public, the password and all keys are deleted.',
    'The password comes from standard input, less one line break at its end, or from a hidden prompt; --generate makes one and prints it once. It is never an argument, because other users of this machine and the history of the shell would see it. A new password ends all sessions.',
  ],
  arguments: [
    { name: 'MODE', optional: true, about: 'public, key or password (default: show the present one)', choices: modes },
  ],
  options: {
    generate: { type: 'boolean', default: false, about: 'with password: make one, and print it' },
    app: otherAppOption,
  },
  excess: 'the password is never an argument: pass MODE alone, and the password on standard input',
  examples: [
    'access',
    'access password --generate',
    'moorage access password < password.txt',
    'access public -a octo/hello',
  ],
  run: async ({ values, positionals: [mode] }, session) => {
    const change = mode === undefined ? undefined : await readChange(mode, values.generate, session);
    const { api, slug } = await chooseApp(session, undefined, values.app);
    const answer = await requestAccess(api, slug, change);
    const password = values.generate ? change?.password : undefined;
    session.terminal.printResult({ ...answer, ...(password === undefined ? {} : { password }) }, () => [
      ...(answer.message === undefined ? formatAccess(answer) : [toHarmlessText(answer.message)]),
      ...(password === undefined ? [] : [`Password: ${password}`]),
    ]);
    return undefined;
  },
});

/** @throws UsageError */
async function readChange(
  mode: string,
  generates: boolean,
  { terminal }: Session,
): Promise<{ access: string; password?: string }> {
  if (mode === 'oidc')
    throw new UsageError('access by an OpenID provider is not offered: use password, or key for programs');
  if (!modes.some((known) => known === mode)) throw new UsageError(`MODE is one of ${modes.join(', ')}`);
  if (mode !== 'password') {
    if (generates) throw new UsageError('--generate is for `moorage access password`');
    return { access: mode };
  }
  // 120 random bits.
  const password = generates
    ? randomBytes(15).toString('base64url')
    : await terminal.readSecret('Password of visitors:');
  if (password === '')
    throw new UsageError('the password is empty: `moorage access public` opens the app to everybody');
  return { access: mode, password };
}

function formatAccess({ access: mode, enforced, keys }: AccessAnswer): string[] {
  return formatFields([
    ['access', mode],
    ['enforced', mode === 'public' ? undefined : enforced ? 'yes' : 'not yet'],
    ['keys', keys.map(({ name }) => name).join(', ')],
  ]);
}

export const accessKeys = defineCommand({
  name: 'access keys',
  group: 'Settings',
  summary: 'List the access keys of an app',
  details: ['Keys themselves are never shown again.'],
  arguments: [appArgument],
  options: { app: appOption },
  examples: ['access keys', 'access keys octo/hello'],
  run: async ({ values, positionals: [name] }, session) => {
    const { api, slug } = await chooseApp(session, name, values.app);
    const { keys } = await requestAccess(api, slug);
    const { terminal } = session;
    terminal.printResult({ app: slug, keys }, () =>
      terminal.formatTable(
        keys.map(({ name: keyName, created_at: created }) => ({ name: keyName, created: formatTime(created) })),
        `${slug} has no access keys.`,
      ),
    );
    return undefined;
  },
});

export const accessAdd = defineCommand({
  name: 'access add',
  group: 'Settings',
  summary: 'Create an access key for visitors, and print it once',
  details: [
    'Visitors send it as `Authorization: Bearer mvk-…`, or as `Moorage-Access: mvk-…` if the app itself uses Authorization. In a browser they enter it on the sign-in page.',
  ],
  arguments: [{ name: 'NAME', about: 'name with which you revoke it, such as team or ci' }],
  options: { app: otherAppOption },
  examples: ['access add team', 'moorage access add ci --app octo/hello --json | jq -r .key'],
  run: async ({ values, positionals: [name = ''] }, session) => {
    assertKeyName(name);
    const { api, slug } = await chooseApp(session, undefined, values.app);
    const answer = await api.call({
      ...{ method: 'POST', path: `/api/apps/${slug}/access/keys`, body: { name }, schema: createdKey, feature },
    });
    session.terminal.printResult(answer, () => [toHarmlessText(answer.key), toHarmlessText(answer.message)]);
    return undefined;
  },
});

export const accessRevoke = defineCommand({
  name: 'access revoke',
  group: 'Settings',
  summary: 'Revoke an access key, and end what it has opened',
  arguments: [{ name: 'NAME', about: 'name of the key' }],
  options: { app: otherAppOption },
  examples: ['access revoke team', 'access revoke ci --app octo/hello'],
  run: async ({ values, positionals: [name = ''] }, session) => {
    assertKeyName(name);
    const { api, slug } = await chooseApp(session, undefined, values.app);
    const answer = await api.call({
      ...{ method: 'DELETE', path: `/api/apps/${slug}/access/keys/${name}`, schema: anyAnswer, feature },
    });
    session.terminal.printResult(answer, () => toHarmlessText(answer.message ?? `Revoked ${name} of ${slug}.`));
    return undefined;
  },
});

/** @throws UsageError, without the text: a key that is entered by mistake must not be shown */
function assertKeyName(name: string): void {
  if (!/^[a-z0-9]([-a-z0-9]{0,38}[a-z0-9])?$/.test(name))
    throw new UsageError('NAME must consist of at most 40 lower-case letters, digits and inner hyphens');
}
