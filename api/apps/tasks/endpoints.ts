// The endpoints with which an author sees and starts tasks. To start one, the API writes a request into the HostedApp; the
// operator makes the Job.
import { readSlug } from '../../../crds/slugs.ts';
import { createHash, randomBytes } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import { z } from 'zod';
import { type Control, isSuspended } from '../../../crds/control.ts';
import { readSettings, resolveSpec } from '../../../crds/effective-settings.ts';
import {
  findDueTimes,
  keptRequests,
  listScheduledComponents,
  type RunRequest,
  type ScheduledComponent,
  triggers,
} from '../../../crds/tasks.ts';
import { duration } from '../../../crds/values.ts';
import { createUnknownNameProblem, Problem } from '../../../lib/problem.ts';
import { parseDuration } from '../../../lib/values.ts';
import { idempotencyMismatch, ledgerUnavailable, ledgerUnconfigured } from '../../billing/index.ts';
import { type CallContext, defineEndpoint, type Endpoint, readIdempotencyKey } from '../../http/index.ts';
import type { ActionName } from '../author/access.ts';
import { type AuthorServices, changeProblems, slugParams } from '../author/endpoints.ts';
import { type App, getApp } from '../hosted-apps.ts';
import { readingProblems, runRefused, tooManyRuns, unknownRun, unknownTask } from '../problems.ts';
import { listAppRuns, readRunState, type StoredRun, type TaskRunStore } from './run-store.ts';

export interface TaskServices extends Pick<AuthorServices, 'apps' | 'access' | 'writeControl' | 'now'> {
  readonly store: TaskRunStore;
}

/** Runs of an app that its author may have started and that have not ended. */
const maximumRunning = 2;
const maximumCommandBytes = 8_192;

export function createTaskEndpoints(services: TaskServices): Endpoint[] {
  return [
    createListEndpoint(services),
    createTaskRunsEndpoint(services),
    createRunsEndpoint(services),
    createRunEndpoint(services),
    createStartTaskEndpoint(services),
    createStartCommandEndpoint(services),
  ];
}

export const runView = z.object({
  id: z.string(),
  task: z.string().describe('Name of the task or component; run for a command that is no task.'),
  trigger: z.enum(triggers).describe('schedule, manual (started by its author) or release (before a release starts).'),
  state: z
    .enum(['waiting', 'running', 'succeeded', 'failed', 'missed'])
    .describe('missed: it was due or requested and never started.'),
  command: z.array(z.string()).optional().describe('The command, if it is no task.'),
  commit: z.string().optional().describe('Commit of the release whose image it runs.'),
  requested_at: z.string().optional(),
  scheduled_at: z.string().optional(),
  started_at: z.string().optional(),
  ended_at: z.string().optional(),
  exit_code: z.int().optional(),
  reason: z.string().optional().describe('How it ended, such as Completed, Error, OOMKilled or DeadlineExceeded.'),
  log: z.string().describe('Path of its log.'),
});
export type RunView = z.output<typeof runView>;

const taskView = z.object({
  name: z.string(),
  command: z.array(z.string()).describe('Empty: the start command of its image.'),
  schedule: z.string().optional().describe('If not set, it runs only when its author starts it.'),
  time_zone: z.string(),
  overlap: z.enum(['skip', 'replace']),
  timeout_seconds: z.int(),
  next_run_at: z.string().optional().describe('When it is due next, RFC 3339. Not set while the app is suspended.'),
  last_run: runView.optional(),
});

export const tasksView = z.object({ tasks: z.array(taskView) });
export const runsView = z.object({
  runs: z.array(runView),
  next: z.string().optional().describe('`before` of the next page, if there may be one.'),
});

export function toRunView(slug: string, run: StoredRun): RunView {
  return {
    ...{ id: run.id, task: run.task, trigger: run.trigger, state: readRunState(run) },
    ...{ command: run.command === undefined ? undefined : [...run.command], commit: run.commit },
    ...{ requested_at: run.requestedAt, scheduled_at: run.scheduledAt, started_at: run.startedAt },
    ...{ ended_at: run.endedAt, exit_code: run.exitCode, reason: run.reason },
    log: `/api/apps/${slug}/logs?run=${encodeURIComponent(run.id)}`,
  };
}

const databaseProblems = [ledgerUnconfigured, ledgerUnavailable];

/** The tasks of the release that was built last. */
function listTasks(app: App): readonly ScheduledComponent[] {
  return listScheduledComponents(resolveSpec(app, readSettings(app.status?.built?.settings)));
}

/** @throws Problem (unknown-task) */
function getTask(app: App, name: string): ScheduledComponent {
  const tasks = listTasks(app);
  const found = tasks.find((task) => task.name === name);
  if (found !== undefined) return found;
  throw createUnknownNameProblem(unknownTask, {
    ...{ says: 'Unknown task', name, names: tasks.map((task) => task.name) },
    all: `GET /api/apps/${readSlug(app)}/tasks lists the tasks.`,
  });
}

function createListEndpoint({ access, store, now = () => new Date() }: TaskServices): Endpoint {
  return defineEndpoint({
    method: 'GET',
    path: '/api/apps/{slug}/tasks',
    operation: 'listAppTasks',
    tag: 'apps',
    summary: 'List the tasks of an app',
    description: 'Its tasks and cron components, with their last run and when they are due next.',
    params: slugParams,
    output: tasksView,
    outputDescription: 'The tasks.',
    returnsCallerData: true,
    problems: [...readingProblems, ...databaseProblems],
    head: 'as GET',
    handler: async ({ params: { slug } }, context) => {
      const { app } = await access.identify(slug, context, 'listAppTasks');
      await store.record(app, now());
      const last = new Map((await store.listLast(app.metadata.uid)).map((run) => [run.task, run]));
      const isStopped = isSuspended(app.spec);
      return {
        tasks: listTasks(app).map((task) => {
          const run = last.get(task.name);
          const next = isStopped ? undefined : findDueTimes(task, now()).next;
          return {
            ...{ name: task.name, command: [...task.command], schedule: task.schedule, time_zone: task.timeZone },
            ...{ overlap: task.overlap, timeout_seconds: task.timeoutSeconds },
            next_run_at: next === undefined ? undefined : new Date(next).toISOString(),
            last_run: run && toRunView(slug, run),
          };
        }),
      };
    },
  });
}

const pageQuery = z.strictObject({
  limit: z.coerce.number().int().min(1).max(100).default(20).describe('Runs, from 1 to 100; default 20.'),
  before: z.string().min(1).max(80).optional().describe('Only runs that are older than the one with this id.'),
});
type PageQuery = z.output<typeof pageQuery>;

const nameParams = slugParams.extend({
  name: z
    .string()
    .regex(/^[a-z]([-a-z0-9]{0,28}[a-z0-9])?$/, 'must be the name of a task')
    .describe('Name of a task.'),
});

async function listRuns(
  { store, now = () => new Date() }: TaskServices,
  app: App,
  task: string | undefined,
  { limit, before }: PageQuery,
): Promise<z.input<typeof runsView>> {
  await store.record(app, now());
  const runs = await store.list(app.metadata.uid, task, limit, before);
  return {
    runs: runs.map((run) => toRunView(readSlug(app), run)),
    next: runs.length === limit ? runs.at(-1)?.id : undefined,
  };
}

const runsOutput = {
  output: runsView,
  outputDescription: 'The runs, newest first.',
  returnsCallerData: true,
  head: 'as GET',
} as const;

function createTaskRunsEndpoint(services: TaskServices): Endpoint {
  return defineEndpoint({
    ...runsOutput,
    method: 'GET',
    path: '/api/apps/{slug}/tasks/{name}/runs',
    operation: 'listTaskRuns',
    tag: 'apps',
    summary: 'List the runs of a task',
    description:
      'When it ran, what started it and how it ended. Those of a task that was removed are listed, too. Runs are kept for 90 days.',
    params: nameParams,
    query: pageQuery,
    problems: [...readingProblems, ...databaseProblems],
    handler: async ({ params, query }, context) =>
      listRuns(
        services,
        (await services.access.identify(params.slug, context, 'listTaskRuns')).app,
        params.name,
        query,
      ),
  });
}

function createRunsEndpoint(services: TaskServices): Endpoint {
  return defineEndpoint({
    ...runsOutput,
    method: 'GET',
    path: '/api/apps/{slug}/runs',
    operation: 'listAppRuns',
    tag: 'apps',
    summary: 'List the runs of all tasks and commands of an app',
    description: 'Newest first, kept for 90 days.',
    params: slugParams,
    query: pageQuery,
    problems: [...readingProblems, ...databaseProblems],
    handler: async ({ params, query }, context) =>
      listRuns(services, (await services.access.identify(params.slug, context, 'listAppRuns')).app, undefined, query),
  });
}

/** Finds a run: one that an app shows, or one in the database. @throws Problem (unknown-run) */
export async function getRun({ store }: Pick<TaskServices, 'store'>, app: App, id: string): Promise<StoredRun> {
  const run = listAppRuns(app, new Date()).find((each) => each.id === id) ?? (await store.get(app.metadata.uid, id));
  if (run !== undefined) return run;
  const { name } = app.metadata;
  throw new Problem(unknownRun, `${name} has no run ${id}. GET /api/apps/${name}/runs lists its runs.`);
}

function createRunEndpoint(services: TaskServices): Endpoint {
  return defineEndpoint({
    method: 'GET',
    path: '/api/apps/{slug}/runs/{id}',
    operation: 'getRun',
    tag: 'apps',
    summary: 'Get a run of a task or command',
    description: 'Poll it until ended_at is set.',
    params: slugParams.extend({ id: z.string().min(1).max(80).describe('Id of the run.') }),
    output: runView,
    outputDescription: 'The run.',
    returnsCallerData: true,
    problems: [...readingProblems, unknownRun, ...databaseProblems],
    head: 'as GET',
    handler: async ({ params: { slug, id } }, context) =>
      toRunView(slug, await getRun(services, (await services.access.identify(slug, context, 'getRun')).app, id)),
  });
}

const startOutput = {
  output: runView.extend({ message: z.string() }),
  outputDescription: 'The run. It starts within seconds; follow its log, and GET it until ended_at is set.',
  problems: [...changeProblems, runRefused, tooManyRuns, idempotencyMismatch],
} as const;
const once = `At most ${maximumRunning} of an app run at the same time. With an Idempotency-Key, a request that is sent again starts nothing.`;

function createStartTaskEndpoint(services: TaskServices): Endpoint {
  return defineEndpoint({
    ...startOutput,
    method: 'POST',
    path: '/api/apps/{slug}/tasks/{name}/runs',
    operation: 'startTask',
    tag: 'apps',
    summary: 'Start a task now',
    description: `Runs a task or cron component once, apart from its schedule. ${once}`,
    params: nameParams,
    problems: [...startOutput.problems, unknownTask],
    handler: async ({ params: { slug, name } }, context) =>
      startRun(
        services,
        slug,
        context,
        { operation: 'startTask', action: 'run-task', detail: { task: name } },
        (app) => ({
          task: name,
          timeoutSeconds: Math.max(10, getTask(app, name).timeoutSeconds),
        }),
      ),
  });
}

const commandBody = z.strictObject({
  command: z
    .array(z.string().min(1).max(1_024))
    .min(1)
    .max(64)
    .refine((words) => Buffer.byteLength(words.join('')) <= maximumCommandBytes, {
      error: `can have at most ${maximumCommandBytes} bytes together`,
    })
    .describe('Program and arguments. Not run in a shell. They are in the audit log, so they must not hold secrets.'),
  timeout: duration('timeout', '10s', '1h').default('10m').describe('How long it may take, from 10s to 1h.'),
});

function createStartCommandEndpoint(services: TaskServices): Endpoint {
  return defineEndpoint({
    ...startOutput,
    method: 'POST',
    path: '/api/apps/{slug}/runs',
    operation: 'startCommand',
    tag: 'apps',
    summary: 'Run a command',
    description: `Runs a command once in a pod of its own, with the image, variables, secrets, limits, volumes and services of the release that runs. ${once}`,
    params: slugParams,
    body: commandBody,
    handler: async ({ params: { slug }, body }, context) =>
      startRun(
        services,
        slug,
        context,
        { operation: 'startCommand', action: 'run-command', detail: { command: body.command } },
        () => ({
          command: body.command,
          timeoutSeconds: Math.round(parseDuration(body.timeout) / 1_000),
        }),
      ),
  });
}

type RunContent = Omit<RunRequest, 'id' | 'requestedAt'>;

/** Requests a run for the author of an app. @throws as AuthorAccess.act, and what `read` throws */
async function startRun(
  { apps, access, writeControl, store, now = () => new Date() }: TaskServices,
  slug: string,
  context: CallContext,
  action: ActionName,
  read: (app: App) => RunContent,
): Promise<RunView & { message: string }> {
  // The same at each name of the app.
  const id = createRunId(getApp(apps, slug).metadata.name, readIdempotencyKey(context.headers));
  const detail = { ...action.detail, run: id };
  return access.act(slug, context, { ...action, detail }, async ({ app }) => {
    const wanted = read(app);
    const known = await findKnown(store, app, id, wanted);
    if (known !== undefined) return { ...toRunView(slug, known), message: 'An earlier request has started this run.' };
    assertRunnable(app);
    const request = { id, ...wanted, requestedAt: now().toISOString() };
    const stored = await writeControl(app, (control) => ({ runs: addRequest(app, control, request, now()) }));
    // The copy in the database is made again in a moment.
    await store.record(stored, now()).catch(() => undefined);
    return { ...toRunView(slug, await getRun({ store }, stored, id)), message: `The run ${id} starts within seconds.` };
  });
}

/** The id of a run, which is the name of its Job. The same key gives the same id, so that a repeated request is recognized. */
function createRunId(app: string, key: string | undefined): string {
  const unique =
    key === undefined
      ? randomBytes(10).toString('hex')
      : createHash('sha256')
          .update(JSON.stringify([app, key]))
          .digest('hex');
  return `run-${app.slice(0, 20).replace(/-+$/, '')}-${unique.slice(0, 20)}`;
}

/** The run that an earlier request with the same key has started. @throws Problem (idempotency-mismatch) */
async function findKnown(
  store: TaskRunStore,
  app: App,
  id: string,
  wanted: RunContent,
): Promise<StoredRun | undefined> {
  const known = listAppRuns(app, new Date()).find((each) => each.id === id) ?? (await store.get(app.metadata.uid, id));
  if (known === undefined) return undefined;
  const isSame =
    isDeepStrictEqual(known.command, wanted.command) && (wanted.task === undefined || known.task === wanted.task);
  if (isSame) return known;
  throw new Problem(
    idempotencyMismatch,
    'This Idempotency-Key was already used for a different run. Use a new key for a new run.',
  );
}

/** @throws Problem (run-refused) */
function assertRunnable(app: App): void {
  const name = readSlug(app);
  const { spec, status } = app;
  if (isSuspended(spec) || spec.run?.replicas === 0)
    throw new Problem(runRefused, `${name} is suspended. Resume it first, with POST /api/apps/${name}/resume.`);
  if (status?.built === undefined)
    throw new Problem(runRefused, `${name} has no image yet. Wait until its first build has ended.`);
}

/** Adds a request, and removes the oldest ones whose runs have ended. @throws Problem (too-many-runs) */
function addRequest(app: App, { runs = [] }: Control, request: RunRequest, now: Date): RunRequest[] {
  const shown = listAppRuns({ ...app, spec: { ...app.spec, control: { ...app.spec.control, runs } } }, now);
  const isEnded = ({ id }: RunRequest): boolean => shown.find((run) => run.id === id)?.endedAt !== undefined;
  // Another replica has been faster with the same key.
  if (runs.some(({ id }) => id === request.id)) return runs;
  const open = runs.filter((run) => !isEnded(run));
  if (open.length >= maximumRunning)
    throw new Problem(
      tooManyRuns,
      `${open.length} runs of ${readSlug(app)} have not ended: ${open.map(({ id }) => id).join(', ')}. Try again when one has.`,
      { headers: { 'retry-after': '10' } },
    );
  const ended = runs.filter(isEnded).slice(-(keptRequests - open.length - 1));
  return [...ended, ...open, request];
}
