// Commands for what an author sets without a commit: secrets, variables and settings.
import { z } from 'zod';
import { toHarmlessText } from '../../../lib/harmless-text.ts';
import { parseWholeNumber, UsageError } from '../../../lib/command-line.ts';
import { type Api, anyAnswer } from '../client.ts';
import { formatFields, toRows } from '../output.ts';
import { defineCommand, type Session } from '../program.ts';
import { appArgument, appOption, chooseApp, otherAppOption } from './apps.ts';

const variableName = /^[A-Za-z_][A-Za-z0-9_]*$/;

/** @throws UsageError, without the text: it may hold a value that must not be shown */
function assertVariableName(name: string): void {
  if (!variableName.test(name))
    throw new UsageError('NAME must consist of letters, digits and underscores, and not begin with a digit');
}

// Secrets

const noArgument = 'the value of a secret is never an argument: pass NAME alone, and the value on standard input';

const secretList = z.looseObject({
  secrets: z.array(z.looseObject({ name: z.string() })),
  missing: z.array(z.looseObject({ name: z.string(), reason: z.string() })).default([]),
});

export const secretsList = defineCommand({
  name: 'secrets list',
  group: 'Settings',
  summary: 'List the names of the secrets of an app',
  details: [
    'Values are never shown. Variables that the app is known to need and that have no value are listed below them.',
  ],
  arguments: [appArgument],
  options: { app: appOption },
  examples: ['secrets list', 'secrets list octo/hello'],
  run: async ({ values, positionals: [name] }, session) => {
    const { api, slug } = await chooseApp(session, name, values.app);
    const list = await api.call({ path: `/api/apps/${slug}/secrets`, schema: secretList, feature: 'secrets' });
    const { terminal } = session;
    terminal.printResult(list, () => [
      ...terminal.formatTable(toRows(list.secrets), `${slug} has no secrets.`),
      ...(list.missing.length === 0
        ? []
        : [
            '',
            'Without a value:',
            ...terminal.formatTable(toRows(list.missing.map(({ name, reason }) => ({ name, reason }))), ''),
          ]),
    ]);
    return undefined;
  },
});

export const secretsSet = defineCommand({
  name: 'secrets set',
  group: 'Settings',
  summary: 'Set a secret, which the app reads as an environment variable',
  details: [
    'The value comes from standard input, less one line break at its end, or from a hidden prompt. It is never an argument, because other users of this machine and the history of the shell would see it.',
  ],
  arguments: [{ name: 'NAME', about: 'name of the variable' }],
  options: { app: otherAppOption },
  excess: noArgument,
  examples: [
    'secrets set API_KEY',
    'moorage secrets set API_KEY < api-key.txt',
    'pass show api | moorage secrets set API_KEY -a hello',
  ],
  run: async ({ values, positionals: [name = ''] }, session) => {
    if (name.includes('=')) throw new UsageError(noArgument);
    assertVariableName(name);
    const { api, slug } = await chooseApp(session, undefined, values.app);
    const { terminal } = session;
    const value = await terminal.readSecret(`Value of ${name}:`);
    if (value === '') throw new UsageError('the value is empty: `moorage secrets unset` removes a secret');
    const answer = await api.call({
      method: 'PUT',
      path: `/api/apps/${slug}/secrets/${name}`,
      body: { value },
      schema: anyAnswer,
      feature: 'secrets',
    });
    terminal.printResult(answer, () => toHarmlessText(answer.message ?? `Set ${name} of ${slug}.`));
    return undefined;
  },
});

export const secretsUnset = defineCommand({
  name: 'secrets unset',
  group: 'Settings',
  summary: 'Remove a secret',
  arguments: [{ name: 'NAME', about: 'name of the variable' }],
  options: { app: otherAppOption },
  examples: ['secrets unset API_KEY', 'secrets unset API_KEY --app octo/hello'],
  run: async ({ values, positionals: [name = ''] }, session) => {
    assertVariableName(name);
    const { api, slug } = await chooseApp(session, undefined, values.app);
    const answer = await api.call({
      method: 'DELETE',
      path: `/api/apps/${slug}/secrets/${name}`,
      schema: anyAnswer,
      feature: 'secrets',
    });
    session.terminal.printResult(answer, () => toHarmlessText(answer.message ?? `Removed ${name} of ${slug}.`));
    return undefined;
  },
});

// Variables and settings

const variable = z.object({ name: z.string(), value: z.string() });
type Variable = z.output<typeof variable>;

const ownSettings = z.looseObject({
  env: z.array(variable).optional(),
  replicas: z.number().optional(),
  idleAfter: z.string().optional(),
  healthPath: z.string().optional(),
});
const settingsAnswer = z.looseObject({ settings: ownSettings, message: z.string().optional() });
type SettingsAnswer = z.output<typeof settingsAnswer>;

/** A field that is absent stays as it is, and null removes it. */
interface SettingsChange {
  readonly env?: readonly Variable[];
  readonly replicas?: number | null;
  readonly idleAfter?: string | null;
  readonly healthPath?: string | null;
}

/** The settings, after a change if there is one. */
async function requestSettings(api: Api, slug: string, change?: SettingsChange): Promise<SettingsAnswer> {
  const request = { path: `/api/apps/${slug}/settings`, schema: settingsAnswer, feature: 'settings' };
  return api.call(change === undefined ? request : { ...request, method: 'PUT', body: change });
}

export const envList = defineCommand({
  name: 'env list',
  group: 'Settings',
  summary: 'List the environment variables that you set without a commit',
  arguments: [appArgument],
  options: { app: appOption },
  examples: ['env list', 'moorage env list octo/hello --json | jq .env'],
  run: async ({ values, positionals: [name] }, session) => {
    const { api, slug } = await chooseApp(session, name, values.app);
    const { env = [] } = (await requestSettings(api, slug)).settings;
    const { terminal } = session;
    terminal.printResult({ app: slug, env }, () =>
      terminal.formatTable(
        env.map(({ name: variableOfApp, value }) => ({ name: variableOfApp, value })),
        `No variables of ${slug} are set here. Those of moorage.yaml are in its repository.`,
      ),
    );
    return undefined;
  },
});

export const envSet = defineCommand({
  name: 'env set',
  group: 'Settings',
  summary: 'Set environment variables, which take precedence over those of moorage.yaml',
  details: ['For values that nobody else may see, use `moorage secrets set`.'],
  arguments: [{ name: 'NAME=VALUE', rest: true, about: 'a variable and its value' }],
  options: { app: otherAppOption },
  examples: ['env set GREETING=hello', "env set GREETING='good morning' LOG_LEVEL=debug --app octo/hello"],
  run: async ({ values, positionals }, session) => {
    const wanted = positionals.map(parseVariable);
    return changeEnv(session, values.app, `Set ${wanted.map(({ name }) => name).join(', ')}`, (env) => [
      ...env.filter(({ name }) => !wanted.some((one) => one.name === name)),
      ...wanted,
    ]);
  },
});

/** @throws UsageError */
function parseVariable(text: string): Variable {
  const at = text.indexOf('=');
  if (at < 0) throw new UsageError(`variables are written as NAME=VALUE, and one has no "="`);
  const name = text.slice(0, at);
  assertVariableName(name);
  return { name, value: text.slice(at + 1) };
}

export const envUnset = defineCommand({
  name: 'env unset',
  group: 'Settings',
  summary: 'Remove environment variables that you set without a commit',
  arguments: [{ name: 'NAME', rest: true, about: 'name of a variable' }],
  options: { app: otherAppOption },
  examples: ['env unset GREETING', 'env unset GREETING LOG_LEVEL --app octo/hello'],
  run: async ({ values, positionals }, session) => {
    for (const name of positionals) assertVariableName(name);
    return changeEnv(session, values.app, `Removed ${positionals.join(', ')}`, (env) => {
      const missing = positionals.find((name) => !env.some((one) => one.name === name));
      if (missing !== undefined) throw new UsageError(`${missing} is not set here: \`moorage env list\` shows what is`);
      return env.filter(({ name }) => !positionals.includes(name));
    });
  },
});

async function changeEnv(
  session: Session,
  app: string | undefined,
  done: string,
  change: (env: readonly Variable[]) => readonly Variable[],
): Promise<undefined> {
  const { api, slug } = await chooseApp(session, undefined, app);
  const before = await requestSettings(api, slug);
  const answer = await requestSettings(api, slug, { env: change(before.settings.env ?? []) });
  session.terminal.printResult(answer, () => toHarmlessText(answer.message ?? `${done} of ${slug}.`));
  return undefined;
}

const fields = { replicas: 'replicas', 'idle-after': 'idleAfter', 'health-path': 'healthPath' } as const;
const fieldNames = Object.keys(fields);

export const settings = defineCommand({
  name: 'settings',
  group: 'Settings',
  summary: 'Show or change how an app runs, without a commit',
  details: ['Without options, this shows what you set. A setting takes precedence over that of moorage.yaml.'],
  arguments: [appArgument],
  options: {
    replicas: { type: 'string', value: 'N', about: 'number of processes, from 0 to 20' },
    'idle-after': {
      type: 'string',
      value: 'TIME',
      about: 'time without a request after which it rests, such as 15m; auto, or never',
    },
    'health-path': { type: 'string', value: 'PATH', about: 'path that answers if the app is healthy' },
    unset: {
      type: 'string',
      multiple: true,
      value: 'FIELD',
      choices: fieldNames,
      about: `remove a setting: ${fieldNames.join(', ')}`,
    },
    app: appOption,
  },
  examples: ['settings', 'settings octo/hello --replicas 2 --health-path /healthz', 'settings --unset idle-after'],
  run: async ({ values, positionals: [name] }, session) => {
    const change = readChange(values);
    const { api, slug } = await chooseApp(session, name, values.app);
    const answer = await requestSettings(api, slug, Object.keys(change).length === 0 ? undefined : change);
    const { env = [], replicas, idleAfter, healthPath } = answer.settings;
    session.terminal.printResult(answer, () => {
      const lines = formatFields([
        ['replicas', replicas?.toString()],
        ['idle-after', idleAfter],
        ['health-path', healthPath],
        ['env', env.map((one) => one.name).join(', ')],
      ]);
      const note = answer.message === undefined ? [] : [toHarmlessText(answer.message)];
      return [...(lines.length === 0 ? [`Nothing of ${slug} is set here.`] : lines), ...note];
    });
    return undefined;
  },
});

/** @throws UsageError */
function readChange(values: {
  readonly replicas?: string | undefined;
  readonly 'idle-after'?: string | undefined;
  readonly 'health-path'?: string | undefined;
  readonly unset?: readonly string[] | undefined;
}): SettingsChange {
  const { replicas, 'idle-after': idleAfter, 'health-path': healthPath, unset = [] } = values;
  return {
    ...Object.fromEntries(unset.map((name) => [parseField(name), null])),
    ...(replicas === undefined
      ? {}
      : { replicas: parseWholeNumber('--replicas', replicas, { minimum: 0, maximum: 20 }) }),
    ...(idleAfter === undefined ? {} : { idleAfter }),
    ...(healthPath === undefined ? {} : { healthPath }),
  };
}

function parseField(text: string): string {
  const field = Object.entries(fields).find(([name]) => name === text)?.[1];
  if (field === undefined) throw new UsageError(`--unset is one of ${fieldNames.join(', ')}`);
  return field;
}
