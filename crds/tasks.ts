// Defines the tasks of an app (spec.tasks): commands with what the app itself runs with, at the times of a schedule or when
// its author starts them. Also the requests for runs (spec.control.runs) and the runs as the status has them.
import { Cron } from 'croner';
import { z } from 'zod';
import { parseDuration } from '../lib/values.ts';
import { type Component, componentName, findMainComponent, listComponents, schedule } from './components.ts';
import { addRules, createPatternRule, duration, listBy, timestamp } from './values.ts';

/** Most tasks of an app. */
const maximumTasks = 8;
/** Requests for runs that a HostedApp keeps, those of runs that have ended included. */
export const keptRequests = 8;
/** Runs that the status of an app keeps; the API copies them to its database. */
export const keptRuns = 20;

/** Name of what runs a command that is no task. */
export const commandName = 'run';

const taskCommand = z.array(z.string().min(1).max(1_024)).min(1).max(64);

const timeZone = addRules(
  z.string().max(64),
  createPatternRule(
    '^[A-Za-z][A-Za-z0-9_+-]*(/[A-Za-z0-9_+-]+){0,2}$',
    'timeZone must be a name of the time zone database, like Europe/Berlin or Etc/UTC',
  ),
);

const task = z.strictObject({
  name: addRules(componentName, {
    cel: `self != '${commandName}'`,
    isValid: (name) => name !== commandName,
    message: `${commandName} is reserved; give the task another name`,
  }).describe('Name of the task.'),
  command: taskCommand.describe('Command and arguments. Not run in a shell.'),
  schedule: schedule
    .optional()
    .describe('When it runs, by the five fields of cron. If not set, it runs only when its author starts it.'),
  timeZone: timeZone.default('Etc/UTC').describe('Time zone of the schedule, such as Europe/Berlin.'),
  timeout: duration('timeout', '10s', '1h').default('10m').describe('How long a run may take, from 10s to 1h.'),
  overlap: z
    .enum(['skip', 'replace'])
    .default('skip')
    .describe('If a run is due before the last one has ended. skip: it is left out. replace: the last one is stopped.'),
});

export const tasks = listBy(z.array(task).max(maximumTasks), 'name');

/** A run that an author has requested. The operator starts it once. */
const runRequest = addRules(
  z.strictObject({
    id: addRules(
      z.string().max(50),
      createPatternRule(
        '^run-[a-z0-9]([-a-z0-9]*[a-z0-9])?$',
        'id must be one that the API has made, like run-app-0a1b2c',
      ),
    ).describe('Identifies the run, and names its Job.'),
    task: z.string().max(30).optional().describe('Name of the task or cron component to run.'),
    command: taskCommand.optional().describe('Command to run instead of a task.'),
    timeoutSeconds: z.int().min(10).max(3_600).describe('How long it may take.'),
    requestedAt: timestamp
      .max(40)
      .describe('When it was requested. It is not started later than 15 minutes after that.'),
  }),
  {
    cel: 'has(self.task) != has(self.command)',
    isValid: (request) => (request.task === undefined) !== (request.command === undefined),
    message: 'set task or command, and not both',
  },
);
export type RunRequest = z.output<typeof runRequest>;

export const runRequests = listBy(z.array(runRequest).max(keptRequests), 'id');

/** A request that is older than this is not started any more. */
export const startWithinMs = 900_000;

export const triggers = ['schedule', 'manual', 'release'] as const;

const taskRun = z.object({
  id: z.string().max(80).describe('Name of its Job.'),
  task: z.string().max(30).describe(`Name of the task or component; ${commandName} for another command.`),
  trigger: z.enum(triggers).describe('schedule, manual (its author started it), or release (before a release starts).'),
  commit: z.string().max(64).optional().describe('Commit of the release whose image it runs.'),
  scheduledAt: timestamp.optional().describe('When it was due.'),
  startedAt: timestamp.optional().describe('When it was started. Not set if it never was.'),
  endedAt: timestamp.optional().describe('When it ended.'),
  exitCode: z.int().optional().describe('Exit code of its process.'),
  reason: z
    .string()
    .max(60)
    .optional()
    .describe(
      'How it ended: Completed, Error, OOMKilled, DeadlineExceeded, Missed, Replaced, Removed or another word of Kubernetes.',
    ),
});
export type TaskRun = z.output<typeof taskRun>;

/** Fields of the status about runs of tasks. */
export const taskStatus = {
  taskRuns: z.array(taskRun).max(keptRuns).optional().describe('Runs of tasks, newest first.'),
  schedules: z
    .object({
      hash: z.string().max(100).describe('Hash of the schedules, and of whether they are stopped.'),
      since: timestamp.describe('Since when they have been the same. What was due before that was not missed.'),
    })
    .optional()
    .describe('The schedules of the app.'),
};

/** Type of the condition of an app whose tasks fail. It is there only while one does. */
export const failingTasksCondition = 'TasksFailing';

/** Whether a run has ended well. */
export function isSuccessful({ reason }: Pick<TaskRun, 'reason'>): boolean {
  return reason === 'Completed';
}

/** What tasks are resolved from: the spec of an app, with every default. */
type TaskSource = Parameters<typeof listComponents>[0] & { readonly tasks: z.output<typeof tasks> };

/** A task as the component that it is the short form of, and how its runs are limited. */
export interface ScheduledComponent extends Component {
  readonly timeZone: string;
  readonly overlap: 'skip' | 'replace';
  readonly timeoutSeconds: number;
}

/** Longest run of a cron component. */
const longestCronSeconds = 3_600;

/** Every task of an app, and its cron components, of which tasks are the short form: with what the component at / has. */
export function listScheduledComponents(source: TaskSource): readonly ScheduledComponent[] {
  const all = listComponents(source);
  const crons = all
    .filter(({ kind }) => kind === 'cron')
    .map((component) => ({
      ...component,
      ...{ timeZone: 'Etc/UTC', overlap: 'skip' as const, timeoutSeconds: longestCronSeconds },
    }));
  const own = source.tasks.map(({ name, command, schedule: at, timeout, ...rest }) => ({
    ...toEndingComponent(findMainComponent(all), name, command),
    ...{ schedule: at, startupTime: timeout, timeZone: rest.timeZone, overlap: rest.overlap },
    timeoutSeconds: Math.round(parseDuration(timeout) / 1_000),
  }));
  return [...crons, ...own];
}

/** A component that runs a command to its end, with the variables, limits and volumes of another one. */
function toEndingComponent(component: Component, name: string, command: readonly string[]): Component {
  const nothing = { port: undefined, route: undefined, healthPath: undefined, schedule: undefined };
  return { ...component, ...nothing, name, kind: 'cron', command, dependsOn: [] };
}

/** What a request for a run starts; undefined if there is no such task any more. */
export function resolveRequest(source: TaskSource, request: RunRequest): ScheduledComponent | undefined {
  const { task: name, command, timeoutSeconds } = request;
  if (command === undefined) {
    const found = listScheduledComponents(source).find((each) => each.name === name);
    return found && { ...found, timeoutSeconds };
  }
  const component = toEndingComponent(findMainComponent(listComponents(source)), commandName, command);
  return { ...component, timeZone: 'Etc/UTC', overlap: 'skip', timeoutSeconds };
}

/** Names that components and tasks of an app have in common; each names the log of what it runs. */
export function findSharedName(
  list: readonly { readonly name: string }[],
  others: readonly { readonly name: string }[],
): string | undefined {
  return list.find(({ name }) => others.some((other) => other.name === name))?.name;
}

/** Milliseconds since 1970 of the last time at which a schedule was due before a time, and of the next one after it. */
export function findDueTimes(
  { schedule: at, timeZone: zone }: { readonly schedule?: string | undefined; readonly timeZone: string },
  now: Date,
): { readonly last: number | undefined; readonly next: number | undefined } {
  const none = { last: undefined, next: undefined };
  if (at === undefined) return none;
  try {
    const cron = new Cron(at, { timezone: zone, paused: true });
    return { last: cron.previousRuns(1, now)[0]?.getTime(), next: cron.nextRun(now)?.getTime() };
  } catch {
    // Of a form that the cluster refuses, too.
    return none;
  }
}

/** Why a schedule is none, although it has the form of one; undefined if it is one. */
export function explainSchedule(task: {
  readonly schedule?: string | undefined;
  readonly timeZone: string;
}): string | undefined {
  try {
    Intl.DateTimeFormat('en', { timeZone: task.timeZone });
  } catch {
    return `timeZone ${task.timeZone} is not in the time zone database; use a name like Europe/Berlin`;
  }
  // Words of other cron programs, which Kubernetes does not know.
  const isKnown = !/[LW]/i.test((task.schedule ?? '').replaceAll(/[a-z]{2,}/gi, ''));
  if (task.schedule === undefined || (isKnown && findDueTimes(task, new Date()).next !== undefined)) return undefined;
  return `schedule "${task.schedule}" never comes; use the five fields of cron, like "0 3 * * *"`;
}
