// Commands about the git host of an app: the deploy key of a private repository, and the forge token, with which the
// installation reports commit statuses.
import { z } from 'zod';
import { toHarmlessText } from '../../../lib/harmless-text.ts';
import { UsageError } from '../../../lib/command-line.ts';
import { anyAnswer, fetchDeployKey } from '../client.ts';
import { formatFields, formatTime } from '../output.ts';
import { defineCommand } from '../program.ts';
import { appArgument, appOption, chooseApp, chooseName, otherAppOption } from './apps.ts';

const feature = 'commit statuses';
const noArgument = 'a token is never an argument, because others can see it: pass it on standard input';

export const deployKey = defineCommand({
  name: 'deploy-key',
  group: 'Keys and records',
  summary: 'Show the public key that lets the installation read a private repository',
  details: [
    'Add it to the deploy keys of the repository at its git host, with read access only, and submit the repository. It opens no other repository.',
  ],
  arguments: [appArgument],
  options: { app: appOption },
  examples: ['deploy-key', 'deploy-key octo/private', 'moorage deploy-key --json | jq -r .public_key'],
  run: async ({ values, positionals: [name] }, session) => {
    const api = await session.connect();
    const { terminal, folder } = session;
    const found = await fetchDeployKey(api, { name: chooseName(name, values.app), folder });
    terminal.printResult(found, () => [
      toHarmlessText(found.public_key),
      '',
      ...formatFields([
        ['repository', found.repo],
        ['fingerprint', found.fingerprint],
        ['add it at', found.page],
      ]),
    ]);
    return undefined;
  },
});

const state = z.looseObject({
  repository: z.string(),
  forge: z.string().optional(),
  reason: z.string().optional(),
  set: z.boolean(),
  set_at: z.string().optional(),
  refused: z.looseObject({ message: z.string() }).optional(),
  statuses: z.array(
    z.looseObject({
      commit: z.string(),
      state: z.string(),
      description: z.string(),
      at: z.string(),
      delivery: z.string(),
      error: z.string().optional(),
    }),
  ),
});

export const forgeToken = defineCommand({
  name: 'forge-token',
  group: 'Keys and records',
  summary: 'Show whether commit statuses are reported, and the last ones',
  arguments: [appArgument],
  options: { app: appOption },
  examples: ['forge-token', 'forge-token octo/hello'],
  run: async ({ values, positionals: [name] }, session) => {
    const { api, slug } = await chooseApp(session, name, values.app);
    const found = await api.call({ path: `/api/apps/${slug}/forge-token`, schema: state, feature });
    const { terminal } = session;
    const rows = found.statuses.map(({ commit, state: reported, at, delivery, description, error }) => ({
      time: formatTime(at),
      commit: commit.slice(0, 8),
      state: reported,
      delivery,
      description: error ?? description,
    }));
    terminal.printResult(found, () => [
      ...formatFields([
        ['repository', found.repository],
        ['forge', found.forge ?? found.reason],
        ['token', found.set ? `set ${formatTime(found.set_at ?? '')}` : 'not set'],
        ['rejected', found.refused?.message],
      ]),
      ...(rows.length === 0 ? [] : ['', ...terminal.formatTable(rows, '')]),
    ]);
    return undefined;
  },
});

export const forgeTokenSet = defineCommand({
  name: 'forge-token set',
  group: 'Keys and records',
  summary: 'Set the token with which commit statuses are reported',
  details: [
    'The token comes from standard input or from a hidden prompt, and is never shown again. It needs the right to set commit statuses of the repository, and should have no other.',
  ],
  arguments: [],
  options: { app: otherAppOption },
  excess: noArgument,
  examples: ['forge-token set', 'pass show forge | moorage forge-token set -a octo/hello'],
  run: async ({ values }, session) => {
    const { api, slug } = await chooseApp(session, undefined, values.app);
    const { terminal } = session;
    const token = (await terminal.readSecret('Token of the git host:')).trim();
    if (token === '') throw new UsageError('the token is empty: `moorage forge-token delete` deletes it');
    const path = `/api/apps/${slug}/forge-token`;
    const answer = await api.call({ method: 'PUT', path, body: { token }, schema: anyAnswer, feature });
    terminal.printResult(answer, () => toHarmlessText(answer.message ?? `Set the forge token of ${slug}.`));
    return undefined;
  },
});

export const forgeTokenDelete = defineCommand({
  name: 'forge-token delete',
  group: 'Keys and records',
  summary: 'Delete the token with which commit statuses are reported',
  details: ['Nothing more is reported. Revoke the token at the git host, too.'],
  arguments: [appArgument],
  options: { app: appOption },
  examples: ['forge-token delete', 'forge-token delete octo/hello'],
  run: async ({ values, positionals: [name] }, session) => {
    const { api, slug } = await chooseApp(session, name, values.app);
    const path = `/api/apps/${slug}/forge-token`;
    const answer = await api.call({ method: 'DELETE', path, schema: anyAnswer, feature });
    session.terminal.printResult(answer, () => toHarmlessText(answer.message ?? `Deleted the forge token of ${slug}.`));
    return undefined;
  },
});
