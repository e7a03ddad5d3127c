// Commands for the tasks of an app: run a command or a task by hand and follow it to its end, and list tasks and runs.
import { setTimeout as sleep } from 'node:timers/promises';
import { z } from 'zod';
import { toHarmlessText } from '../../../lib/harmless-text.ts';
import { parseWholeNumber } from '../../../lib/command-line.ts';
import { Fault } from '../../submit/installation.ts';
import type { Api } from '../client.ts';
import { formatTime } from '../output.ts';
import { defineCommand, exitCodes, type Session } from '../program.ts';
import { appArgument, appOption, chooseApp, otherAppOption } from './apps.ts';

const run = z.looseObject({
  id: z.string(),
  task: z.string(),
  trigger: z.string(),
  state: z.enum(['waiting', 'running', 'succeeded', 'failed', 'missed']),
  requested_at: z.string().optional(),
  scheduled_at: z.string().optional(),
  started_at: z.string().optional(),
  ended_at: z.string().optional(),
  exit_code: z.number().optional(),
  reason: z.string().optional(),
});
type Run = z.output<typeof run>;

const feature = 'tasks';
/** As the program `timeout` has it. */
const timedOut = 124;
const pollMs = 1_000;

const detach = { type: 'boolean', default: false, about: 'do not follow it: print its id' } as const;
const exitDetail =
  'Prints what it prints, and exits with its exit code: 124 if it was stopped at its timeout. Ctrl-C ends the output and not the run.';

export const runCommand = defineCommand({
  name: 'run',
  group: 'Run',
  summary: 'Run a command with the image, variables, secrets and services of an app',
  details: [
    'The command runs in a pod of its own, and not in a shell. Put -- before a command with options. It is in the audit log, so do not pass secrets.',
    exitDetail,
  ],
  arguments: [{ name: 'COMMAND', about: 'the program and its arguments', rest: true }],
  options: {
    timeout: { type: 'string', value: 'TIME', about: 'how long it may take, from 10s to 1h (default: 10m)' },
    detach,
    app: otherAppOption,
  },
  examples: ['run -- python manage.py migrate --check', "run --timeout 1h -- sh -c 'ls | wc -l'", 'run env -a hello'],
  run: async ({ values, positionals }, session) => {
    const { api, slug } = await chooseApp(session, undefined, values.app);
    const body = { command: positionals, ...(values.timeout === undefined ? {} : { timeout: values.timeout }) };
    const started = await api.call({ method: 'POST', path: `/api/apps/${slug}/runs`, body, schema: run, feature });
    return values.detach ? printStarted(started, session) : followRun(api, slug, started, session);
  },
});

export const tasksRun = defineCommand({
  name: 'tasks run',
  group: 'Run',
  summary: 'Run a task of an app now',
  details: [exitDetail],
  arguments: [{ name: 'NAME', about: 'name of the task' }],
  options: { detach, app: otherAppOption },
  examples: ['tasks run nightly', 'tasks run nightly --app octo/hello --detach'],
  run: async ({ values, positionals: [name = ''] }, session) => {
    const { api, slug } = await chooseApp(session, undefined, values.app);
    const path = `/api/apps/${slug}/tasks/${encodeURIComponent(name)}/runs`;
    const started = await api.call({ method: 'POST', path, schema: run, feature });
    return values.detach ? printStarted(started, session) : followRun(api, slug, started, session);
  },
});

function printStarted(started: Run, { terminal }: Session): number {
  terminal.printResult(started, () => toHarmlessText(started.id));
  return exitCodes.ok;
}

const logLine = z.looseObject({ line: z.string() });

/** Prints the log of a run until it has ended. Returns its exit code. */
async function followRun(api: Api, slug: string, { id }: Run, { terminal }: Session): Promise<number> {
  const query = { run: id, follow: 'true' };
  for await (const { event, data } of api.follow({ path: `/api/apps/${slug}/logs`, query, feature })) {
    const line = event === 'log' ? logLine.safeParse(data) : undefined;
    if (line?.success !== true) continue;
    if (terminal.isJson) terminal.printJsonLine(data);
    else terminal.printLine(toHarmlessText(line.data.line));
  }
  let ended = await readRun(api, slug, id);
  while (ended.ended_at === undefined) {
    await sleep(pollMs);
    ended = await readRun(api, slug, id);
  }
  if (terminal.isJson) terminal.printJsonLine(ended);
  else if (ended.state !== 'succeeded') terminal.printNote(`${id} ${describeEnd(ended)}`);
  return toExitCode(ended);
}

async function readRun(api: Api, slug: string, id: string): Promise<Run> {
  return api.call({ path: `/api/apps/${slug}/runs/${encodeURIComponent(id)}`, schema: run, feature });
}

function toExitCode({ state, reason, exit_code: code = exitCodes.refused }: Run): number {
  if (state === 'missed') throw new Fault('the run was not started: see `moorage status`');
  if (reason === 'DeadlineExceeded') return timedOut;
  return state === 'succeeded' ? exitCodes.ok : code === 0 ? exitCodes.refused : code;
}

function describeEnd({ state, reason = '', exit_code: code }: Run): string {
  if (reason === 'DeadlineExceeded') return 'was stopped at its timeout';
  return `${state}${code === undefined ? '' : ` with exit code ${code}`}${reason === '' ? '' : ` (${reason})`}`;
}

const taskList = z.looseObject({
  tasks: z.array(
    z.looseObject({
      name: z.string(),
      schedule: z.string().optional(),
      time_zone: z.string(),
      next_run_at: z.string().optional(),
      last_run: run.optional(),
    }),
  ),
});

export const tasksList = defineCommand({
  name: 'tasks list',
  group: 'Watch',
  summary: 'List the tasks of an app, when they are due, and how they last ended',
  arguments: [appArgument],
  options: { app: appOption },
  examples: ['tasks list', 'tasks list octo/hello'],
  run: async ({ values, positionals: [name] }, session) => {
    const { api, slug } = await chooseApp(session, name, values.app);
    const list = await api.call({ path: `/api/apps/${slug}/tasks`, schema: taskList, feature });
    const { terminal } = session;
    const rows = list.tasks.map((task) => ({
      name: task.name,
      schedule: task.schedule === undefined ? 'by hand' : `${task.schedule} (${task.time_zone})`,
      next: task.next_run_at === undefined ? '' : formatTime(task.next_run_at),
      last: task.last_run === undefined ? 'never' : `${formatStart(task.last_run)} ${task.last_run.state}`,
    }));
    terminal.printResult(list, () => terminal.formatTable(rows, `${slug} has no tasks.`));
    return undefined;
  },
});

const runList = z.looseObject({ runs: z.array(run) });

export const tasksRuns = defineCommand({
  name: 'tasks runs',
  group: 'Watch',
  summary: 'List the runs of tasks and commands, the newest first',
  arguments: [{ name: 'NAME', about: 'only runs of this task', optional: true }],
  options: {
    limit: { type: 'string', short: 'n', value: 'N', about: 'at most so many (default: 20)' },
    app: otherAppOption,
  },
  examples: ['tasks runs', 'tasks runs nightly -n 5'],
  run: async ({ values, positionals: [name] }, session) => {
    const limit = values.limit === undefined ? undefined : parseWholeNumber('--limit', values.limit);
    const { api, slug } = await chooseApp(session, undefined, values.app);
    const path = `/api/apps/${slug}${name === undefined ? '' : `/tasks/${encodeURIComponent(name)}`}/runs`;
    const list = await api.call({ path, query: { limit: limit?.toString() }, schema: runList, feature });
    const { terminal } = session;
    const rows = list.runs.map((each) => ({
      ...{ id: each.id, task: each.task, trigger: each.trigger, started: formatStart(each), state: each.state },
      end: each.reason === 'Completed' ? '' : describeEnd(each).replace(`${each.state} `, ''),
    }));
    terminal.printResult(list, () => terminal.formatTable(rows, 'Nothing has run yet.'));
    return undefined;
  },
});

function formatStart({ started_at: started, scheduled_at: scheduled, requested_at: requested }: Run): string {
  const at = started ?? scheduled ?? requested;
  return at === undefined ? '' : formatTime(at);
}
