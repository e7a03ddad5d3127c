// Commands that take a repository live and follow it: submit, plan, the logs of an app and of its build, and verify.
import { existsSync, statSync } from 'node:fs';
import { resolve } from 'node:path';
import { getCACertificates, setDefaultCACertificates } from 'node:tls';
import { z } from 'zod';
import { toHarmlessText } from '../../../lib/harmless-text.ts';
import { parseWholeNumber, UsageError } from '../../../lib/command-line.ts';
import { packageRegistries } from '../../../lib/repository.ts';
import { createApiClient } from '../../submit/api-client.ts';
import { Fault, type Installation, LogUnavailable } from '../../submit/installation.ts';
import { createOutput, type Output } from '../../submit/output.ts';
import { submit as submitAndFollow } from '../../submit/submit.ts';
import { type Api, type ApiRequest, fetchStatus } from '../client.ts';
import type { Target } from '../config.ts';
import { formatTime, type Terminal } from '../output.ts';
import { defineCommand, exitCodes } from '../program.ts';
import { appArgument, appOption, chooseApp, chooseName } from './apps.ts';

export const submit = defineCommand({
  name: 'submit',
  group: 'Get started',
  summary: 'Submit a folder or a repository, and follow it until it is live or rejected',
  details: [
    'A folder is pushed in its current state, with changes that are not committed, to the git server of a local cluster. Other installations take repositories from the git hosts that they allow.',
  ],
  arguments: [
    {
      name: 'SOURCE',
      about:
        'a folder, OWNER/NAME on the first of the allowed git hosts, an address, or a package: npm:@scope/name, npm:name or pypi:name',
    },
  ],
  options: {
    name: {
      type: 'string',
      value: 'NAME',
      about: "name of the repository that a folder is pushed to (default: the folder's name)",
    },
  },
  examples: ['submit ./my-app', 'submit octo/hello', 'submit npm:@scope/name --json'],
  run: async ({ values, positionals: [source = ''] }, session) => {
    const { target } = await session.connect();
    const { terminal, folder } = session;
    const path = resolve(folder, source);
    const isPath = existsSync(path);
    if (isPath && statSync(path).isDirectory() && target.local === undefined)
      throw new Fault(
        `${target.address} has no git server for folders: push the folder to a git host that it allows, and submit its address`,
      );
    const installation = toInstallation(target);
    const api = createApiClient(installation, session.reconnect, target.key);
    const output = terminal.isJson
      ? createJsonOutput(terminal)
      : createOutput((line) => {
          terminal.printLine(line);
        });
    try {
      return await submitAndFollow({ what: isPath ? path : source, name: values.name }, { installation, api, output });
    } finally {
      await api.close();
    }
  },
});

/** Another installation than the local cluster has no git server. */
function toInstallation({ address, authority, local }: Target): Installation {
  const none = { gitUrl: address, internalGitUrl: address, gitPassword: undefined };
  return { ...(local ?? none), baseUrl: address, authority };
}

/** One document per event of the log, and one with the outcome. */
function createJsonOutput(terminal: Terminal): Output {
  return {
    printLine: (text) => {
      terminal.printNote(toHarmlessText(text));
    },
    writeEvent: (event) => {
      terminal.printJsonLine(event);
    },
    writeVerdict: (status, reason) => {
      terminal.printJsonLine({ type: 'verdict', reason, ...status });
    },
  };
}

export const plan = defineCommand({
  name: 'plan',
  group: 'Get started',
  summary: 'Show how a folder would be built, and why, without a cluster',
  arguments: [
    { name: 'FOLDER', optional: true, about: 'the folder to plan, in its current state (default: this one)' },
  ],
  options: {
    package: {
      type: 'string',
      value: 'REGISTRY',
      choices: packageRegistries,
      about: `the folder is the content of a package that is published there: ${packageRegistries.join(', ')}`,
    },
  },
  examples: ['plan', 'plan ./my-app', 'moorage plan ./my-app --json | jq .port'],
  run: async ({ values, positionals: [wanted = '.'] }, { terminal, folder }) => {
    const path = resolve(folder, wanted);
    if (statSync(path, { throwIfNoEntry: false })?.isDirectory() !== true)
      throw new UsageError(`"${wanted}" is not a folder`);
    const registry = packageRegistries.find((each) => each === values.package);
    if (values.package !== undefined && registry === undefined)
      throw new UsageError(`--package is one of ${packageRegistries.join(', ')}`);
    // The planners take a while to load, and no other command needs them.
    const { formatJson, formatText, planFolder } = await import('../../plan/plan-folder.ts');
    const planned = planFolder(path, registry);
    terminal.printLine((terminal.isJson ? formatJson(planned) : formatText(planned)).replace(/\n$/, ''));
    return planned.refused ? exitCodes.refused : exitCodes.ok;
  },
});

export const verify = defineCommand({
  name: 'verify',
  group: 'Keys and records',
  summary: 'Verify signed documents, such as statements and charges',
  details: ['Keys and days that you kept are used if they are given; otherwise they are fetched from the issuer.'],
  arguments: [{ name: 'FILE', rest: true, about: 'a signed document: charges, a statement, days, a checkpoint' }],
  options: {
    keys: { type: 'string', value: 'FILE', about: 'the public keys, as /.well-known/jwks.json has them' },
    days: { type: 'string', value: 'FILE', about: 'the sealed days, as /api/ledger/days has them' },
    issuer: {
      type: 'string',
      value: 'URL',
      about: 'address of the installation: a document of another one is refused',
    },
  },
  examples: ['verify statement.json', 'verify charges.json --keys jwks.json --days days.json'],
  run: async ({ values, positionals }, { terminal, folder, config, common }) => {
    const { verifyFiles } = await import('../../../api/accounting/receipts/verify/main.ts');
    // Issuers are asked with the certificates of the process.
    const target = await config.resolveTarget(common).catch(() => undefined);
    if (target?.authority !== undefined)
      setDefaultCACertificates([...getCACertificates('default'), target.authority.pem]);
    const resolveOptional = (file: string | undefined): string | undefined =>
      file === undefined ? undefined : resolve(folder, file);
    const lines: string[] = [];
    const findings = await verifyFiles(
      {
        files: positionals.map((file) => resolve(folder, file)),
        keys: resolveOptional(values.keys),
        days: resolveOptional(values.days),
        issuer: values.issuer?.replace(/\/+$/, ''),
      },
      (line) => {
        lines.push(toHarmlessText(line));
      },
    );
    terminal.printResult({ right: findings === 0, findings, report: lines }, () => lines);
    return findings === 0 ? exitCodes.ok : exitCodes.refused;
  },
});

// Logs

const logLine = z.looseObject({
  line: z.string(),
  at: z.string().optional(),
  component: z.string().optional(),
});
const crash = z.looseObject({
  at: z.string(),
  component: z.string(),
  exit_code: z.number(),
  reason: z.string(),
});
const logPage = z.looseObject({ lines: z.array(logLine), crash: crash.optional() });

export const logs = defineCommand({
  name: 'logs',
  group: 'Watch',
  summary: 'Show what an app writes to its log',
  arguments: [appArgument],
  options: {
    follow: {
      type: 'boolean',
      short: 'f',
      default: false,
      about: 'show new lines as they are written, until you press Ctrl-C',
    },
    since: {
      type: 'string',
      value: 'TIME',
      about: 'only lines from then on: a duration such as 10m, or a time (RFC 3339)',
    },
    tail: { type: 'string', short: 'n', value: 'N', about: 'only the last lines' },
    previous: { type: 'boolean', default: false, about: 'the last lines before the newest crash, and how it ended' },
    component: { type: 'string', value: 'NAME', about: 'only this component of the app' },
    search: { type: 'string', value: 'TEXT', about: 'only lines that contain this text' },
    app: appOption,
  },
  examples: [
    'logs --follow',
    'logs octo/hello --since 10m --search error',
    'moorage logs hello -f --json | jq -r .line',
  ],
  run: async ({ values, positionals: [name] }, session) => {
    if (values.follow && values.previous) throw new UsageError('--follow and --previous cannot be used together');
    const tail = values.tail === undefined ? undefined : parseWholeNumber('--tail', values.tail);
    const { api, slug } = await chooseApp(session, name, values.app);
    const { terminal } = session;
    const request = {
      path: `/api/apps/${slug}/logs`,
      query: {
        follow: values.follow ? 'true' : undefined,
        since: values.since,
        tail: tail?.toString(),
        previous: values.previous ? 'true' : undefined,
        component: values.component,
        search: values.search,
      },
      feature: 'logs of apps',
    };
    return values.follow ? followLog(api, request, terminal) : printLog(api, request, terminal);
  },
});

type LogRequest = Omit<ApiRequest<z.ZodType>, 'schema' | 'body' | 'method'>;

async function printLog(api: Api, request: LogRequest, terminal: Terminal): Promise<number> {
  const page = await api.call({ ...request, schema: logPage });
  terminal.printResult(page, () => page.lines.map((line) => formatLogLine(line, terminal)));
  if (page.crash !== undefined && !terminal.isJson) terminal.printNote(formatCrash(page.crash));
  return exitCodes.ok;
}

async function followLog(api: Api, request: LogRequest, terminal: Terminal): Promise<number> {
  for await (const { event, data } of api.follow(request)) {
    const line = logLine.safeParse(data);
    if (terminal.isJson) terminal.printJsonLine(event === 'log' ? data : { event, data });
    else if (line.success) terminal.printLine(formatLogLine(line.data, terminal));
    else printMessage(data, terminal);
    // The installation ends a stream only if the key opens the app no more.
    if (event === 'end') return exitCodes.refused;
  }
  return exitCodes.ok;
}

function formatLogLine({ at, component, line }: z.output<typeof logLine>, terminal: Terminal): string {
  const origin = [at === undefined ? '' : formatTime(at), component ?? '']
    .filter((part) => part !== '')
    .map((line) => toHarmlessText(line));
  return [...origin.map((part) => terminal.style('dim', part)), toHarmlessText(line)].join('  ');
}

function formatCrash({ at, component, exit_code: code, reason }: z.output<typeof crash>): string {
  return toHarmlessText(`${component} ended at ${formatTime(at)} with exit code ${code} (${reason}).`);
}

/** Events about the stream itself, such as that lines were left out. */
function printMessage(data: unknown, terminal: Terminal): void {
  const parsed = z.looseObject({ message: z.string() }).safeParse(data);
  if (parsed.success) terminal.printNote(toHarmlessText(parsed.data.message));
}

export const buildLog = defineCommand({
  name: 'build-log',
  group: 'Watch',
  summary: 'Show the log of the newest build, and follow it while it runs',
  arguments: [appArgument],
  options: { app: appOption },
  examples: ['build-log', 'build-log octo/hello'],
  run: async ({ values, positionals: [name] }, session) => {
    const api = await session.connect();
    const { terminal, folder } = session;
    const { log_url: url } = await fetchStatus(api, { name: chooseName(name, values.app), folder });
    const client = createApiClient(toInstallation(api.target), session.reconnect);
    const { pathname, search } = new URL(url);
    const output = terminal.isJson
      ? createJsonOutput(terminal)
      : createOutput((line) => {
          terminal.printLine(line);
        });
    try {
      for await (const event of client.log(`${api.target.address}${pathname}${search}`)) output.writeEvent(event);
      return exitCodes.ok;
    } catch (error) {
      throw error instanceof LogUnavailable && error.cause instanceof Fault ? error.cause : error;
    } finally {
      await client.close();
    }
  },
});
