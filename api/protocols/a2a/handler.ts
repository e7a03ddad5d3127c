// Implements the A2A methods. The handler keeps no state: tasks are jobs in PostgreSQL, so any replica can answer for
// any task.
import { randomUUID } from 'node:crypto';
import {
  type AgentCard,
  type GetTaskRequest,
  type ListTasksRequest,
  type ListTasksResponse,
  type Message,
  type SendMessageRequest,
  type StreamResponse,
  type Task,
  type TaskPushNotificationConfig,
  TaskState,
} from '@a2a-js/sdk';
import {
  PushNotificationNotSupportedError,
  RequestMalformedError,
  TaskNotCancelableError,
  TaskNotFoundError,
  UnsupportedOperationError,
  A2AError,
} from '@a2a-js/sdk/errors';
import type { A2ARequestHandler } from '@a2a-js/sdk/server';
import { Problem } from '../../../lib/problem.ts';
import type { CallContext } from '../../http/index.ts';
import { unknownJob, unknownTool } from '../../tools/index.ts';
import { buildAgentCard } from './agent-card.ts';
import type { AgentOptions, AgentTask, AgentTasks } from './calls.ts';
import { fromStored, type StoredReply, toStored } from './message-replays.ts';
import { type PushConfig, readPushConfig, type PushConfigs } from './push-notifications.ts';
import {
  buildAgentMessage,
  endEvents,
  hasEnded,
  type ProblemSite,
  buildProgressEvent,
  buildRefusal,
  buildSingleTask,
  toTask,
  checkHistoryLength,
  limitHistory,
  listTaskPage,
} from './task.ts';
import { type AgentReply, replyTo, toProblem } from './reply.ts';

/** After this time, a call is answered with its unfinished task. */
const patienceMs = 25_000;
/** A stream reads its job again after this time, even without a notification. */
const followMs = 600_000;

interface IncomingMessage {
  readonly message: Message;
  readonly id: string;
  readonly contextId: string;
  readonly push: PushConfig | undefined;
}

export class RequestHandler implements A2ARequestHandler {
  readonly #options: AgentOptions;
  readonly #context: CallContext;
  readonly #streams: OpenStreams;
  /** Protocol version that the caller uses. */
  readonly #version: string;

  constructor(options: AgentOptions, context: CallContext, version: string, streams: OpenStreams) {
    this.#options = options;
    this.#streams = streams;
    this.#context = context;
    this.#version = version;
  }

  async getAgentCard(): Promise<AgentCard> {
    return Promise.resolve(buildAgentCard(this.#options.offer));
  }

  async getAuthenticatedExtendedAgentCard(): Promise<AgentCard> {
    return Promise.reject(
      new UnsupportedOperationError('There is no extended card: the public one says all there is.'),
    );
  }

  async sendMessage(params: SendMessageRequest): Promise<Message | Task> {
    return this.#translateErrors(async () => {
      const reply = await this.#replyOnce(params);
      if (reply.kind === 'whole') return applyHistoryWish(reply.value, params);
      const waitMs = params.configuration?.returnImmediately === true ? 0 : (reply.waitMs ?? patienceMs);
      const task = hasEnded(reply.task) || waitMs === 0 ? reply.task : await this.#follow(reply.task, waitMs);
      return limitHistory(toTask(task, this.#site, reply.metadata), params.configuration);
    });
  }

  async *sendMessageStream(params: SendMessageRequest): AsyncGenerator<StreamResponse, void, undefined> {
    const reply = await this.#translateErrors(() => this.#replyOnce(params));
    if (reply.kind === 'job')
      yield* this.#streamEvents(reply.task, { ...params.configuration, metadata: reply.metadata });
    else {
      const value = applyHistoryWish(reply.value, params);
      yield 'status' in value ? { payload: { $case: 'task', value } } : { payload: { $case: 'message', value } };
    }
  }

  async getTask(params: GetTaskRequest): Promise<Task> {
    return this.#translateErrors(async () => limitHistory(toTask(await this.#getTask(params.id), this.#site), params));
  }

  async listTasks(params: ListTasksRequest): Promise<ListTasksResponse> {
    return this.#translateErrors(async () =>
      listTaskPage(this.#options.tasks, params, { context: this.#context, ...this.#site }),
    );
  }

  async cancelTask({ id }: { readonly id: string }): Promise<Task> {
    return this.#translateErrors(async () => {
      await this.#getTask(id);
      const { task, canceled } = await this.#tasks.cancel(id, this.#context);
      const ended = toTask(task, this.#site);
      if (canceled || ended.status?.state === TaskState.TASK_STATE_CANCELED) return ended;
      throw new TaskNotCancelableError(`Task ${id} has ended already. GetTask returns its result.`);
    });
  }

  async *resubscribe({ id }: { readonly id: string }): AsyncGenerator<StreamResponse, void, undefined> {
    const task = await this.#translateErrors(() => this.#getTask(id));
    if (hasEnded(task))
      throw new UnsupportedOperationError(`Task ${id} has ended, so nothing more happens. GetTask returns its result.`);
    yield* this.#streamEvents(task);
  }

  async createTaskPushNotificationConfig(params: TaskPushNotificationConfig): Promise<TaskPushNotificationConfig> {
    return this.#translateErrors(async () => {
      const { id: job } = await this.#getTask(params.taskId);
      const config = readPushConfig(params);
      await this.#push.check(config, this.#context.signal);
      await this.#push.save(job, config, this.#version);
      return toWireConfig(job, config);
    });
  }

  async getTaskPushNotificationConfig(params: {
    readonly taskId: string;
    readonly id: string;
  }): Promise<TaskPushNotificationConfig> {
    return this.#translateErrors(async () => {
      const { id: job } = await this.#getTask(params.taskId);
      // Clients of 0.3 may omit the id if there is only one config.
      const [first] = params.id === '' ? await this.#push.list(job) : [];
      return toWireConfig(job, first ?? (await this.#push.get(job, params.id)));
    });
  }

  async listTaskPushNotificationConfigs(params: {
    readonly taskId: string;
  }): Promise<{ configs: TaskPushNotificationConfig[]; nextPageToken: string }> {
    return this.#translateErrors(async () => {
      const { id: job } = await this.#getTask(params.taskId);
      const configs = await this.#push.list(job);
      return { configs: configs.map((config) => toWireConfig(job, config)), nextPageToken: '' };
    });
  }

  async deleteTaskPushNotificationConfig(params: { readonly taskId: string; readonly id: string }): Promise<void> {
    return this.#translateErrors(async () => {
      const { id: job } = await this.#getTask(params.taskId);
      await this.#push.delete(job, params.id);
    });
  }

  get #site(): ProblemSite {
    return { baseUrl: this.#options.offer.baseUrl, requestId: this.#context.id };
  }

  get #tasks(): AgentTasks {
    if (this.#options.tasks === undefined) throw new TaskNotFoundError('No tasks are kept here.');
    return this.#options.tasks;
  }

  get #push(): PushConfigs {
    if (this.#options.push === undefined) throw new PushNotificationNotSupportedError();
    return this.#options.push;
  }

  /** Converts problems to A2A errors. */
  async #translateErrors<Value>(work: () => Promise<Value>): Promise<Value> {
    try {
      return await work();
    } catch (error) {
      throw toProtocolError(error, this.#context);
    }
  }

  async #read({ message, configuration }: SendMessageRequest): Promise<IncomingMessage> {
    if (message === undefined) throw new RequestMalformedError('message is missing.');
    checkHistoryLength(configuration);
    if (message.messageId === '') throw new RequestMalformedError('message.messageId is missing.');
    await this.#refuseTask(message.taskId);
    const id = randomUUID();
    const contextId = message.contextId === '' ? randomUUID() : message.contextId.slice(0, 256);
    const given = configuration?.taskPushNotificationConfig;
    const push = given === undefined ? undefined : readPushConfig(given);
    if (push !== undefined) await this.#push.check(push, this.#context.signal);
    return { id, contextId, push, message: { ...message, contextId, taskId: id } };
  }

  /**
   * Rejects a message for a running task. Questions that the agent asks are not stored either: an answer to one is a
   * new, complete request.
   */
  async #refuseTask(taskId: string): Promise<void> {
    if (taskId === '' || this.#options.tasks === undefined) return;
    const task = await this.#getTask(taskId).catch((error: unknown) => {
      if (error instanceof Problem && error.type === unknownJob) return undefined;
      throw error;
    });
    if (task !== undefined)
      throw new UnsupportedOperationError(
        `Task ${taskId} takes no further messages. Send a message without taskId to start a new task.`,
      );
  }

  /** Replies to a message. A repeated message gets the reply to the first one. */
  async #replyOnce(params: SendMessageRequest): Promise<Reply> {
    const { message } = params;
    const { replays } = this.#options;
    const createReply = async (signal: AbortSignal): Promise<Reply> => {
      const sent = await this.#read(params);
      const reply = await this.#reply(sent, signal);
      if ('status' in reply) return { kind: 'whole', value: reply, isRefused: true };
      return reply.kind === 'job' ? reply : { kind: 'whole', value: buildSingleReply(reply, sent) };
    };
    if (message === undefined || replays?.isWanted(message.messageId) !== true)
      return createReply(this.#context.signal);
    let first: Reply | undefined;
    const { value, replayed } = await replays.replyOnce(message, this.#context, async (signal) =>
      toStoredReply((first = await createReply(signal))),
    );
    if (!replayed && first !== undefined) return first;
    return this.#restoreReply(value);
  }

  async #restoreReply(stored: StoredReply): Promise<Reply> {
    const { job, metadata } = stored;
    const whole = fromStored(stored);
    if (whole !== undefined) return { kind: 'whole', value: whole };
    const task = await this.#getTask(job?.id ?? '');
    return { kind: 'job', task, waitMs: job?.waitMs, ...(metadata === undefined ? {} : { metadata }) };
  }

  /** If the call fails, the task ends in the state rejected or failed. */
  async #reply({ message, id, contextId, push }: IncomingMessage, signal: AbortSignal): Promise<AgentReply | Task> {
    const context = { ...this.#context, signal };
    const reply = await replyTo(this.#options, message, { context, contextId }).catch((error: unknown) => {
      const [state, parts] = buildRefusal(toProblem(error, this.#context), this.#site);
      return buildSingleTask({ id, contextId, userMessage: message }, state, parts);
    });
    if (push !== undefined && 'kind' in reply && reply.kind === 'job')
      await this.#push.save(reply.task.id, push, this.#version);
    return reply;
  }

  async #getTask(id: string): Promise<AgentTask> {
    if (id.trim() === '') throw new RequestMalformedError('The id of the task is missing.');
    return this.#tasks.getTask(id, this.#context);
  }

  async #follow(task: AgentTask, waitMs: number): Promise<AgentTask> {
    return this.#tasks.follow(task, { context: this.#context, waitMs });
  }

  /**
   * Streams the task, its progress, its result and its end. Stops early when the client disconnects or this process
   * shuts down.
   */
  async *#streamEvents(
    begun: AgentTask,
    shown: {
      readonly historyLength?: number | undefined;
      readonly metadata?: Record<string, unknown> | undefined;
    } = {},
  ): AsyncGenerator<StreamResponse, void, undefined> {
    const first = limitHistory(toTask(begun, this.#site, shown.metadata), shown);
    yield { payload: { $case: 'task', value: first } };
    // A caller with too many open streams can poll: the task keeps running.
    const leave = hasEnded(begun) ? undefined : this.#streams.take(this.#context.caller().hash);
    if (leave === undefined) return;
    try {
      yield* this.#streamSteps(begun);
    } finally {
      leave();
    }
  }

  async *#streamSteps(begun: AgentTask): AsyncGenerator<StreamResponse, void, undefined> {
    let task = begun;
    while (!hasEnded(task) && !this.#context.signal.aborted) {
      const updates = new Updates<StreamResponse>();
      const following = this.#tasks
        .follow(task, {
          context: this.#context,
          waitMs: followMs,
          report: (progress) => {
            updates.push(buildProgressEvent(begun, progress));
          },
        })
        .finally(() => {
          updates.end();
        });
      yield* updates.readAll();
      task = await this.#translateErrors(() => following);
    }
    if (hasEnded(task)) yield* endEvents(task, this.#site);
  }
}

type Reply =
  | Extract<AgentReply, { readonly kind: 'job' }>
  | { readonly kind: 'whole'; readonly value: Message | Task; readonly isRefused?: true };

function toStoredReply(reply: Reply): StoredReply {
  if (reply.kind === 'whole') return { ...toStored(reply.value), isRefused: reply.isRefused === true };
  const { task, waitMs, metadata } = reply;
  return {
    job: { id: task.id, ...(waitMs === undefined ? {} : { waitMs }) },
    ...(metadata === undefined ? {} : { metadata }),
  };
}

function applyHistoryWish(value: Message | Task, { configuration }: SendMessageRequest): Message | Task {
  return 'status' in value ? limitHistory(value, configuration) : value;
}

/** Builds a reply that needs no task: a message, or a question in a task that waits for a new message. */
function buildSingleReply(
  reply: Exclude<AgentReply, { readonly kind: 'job' }>,
  { message: userMessage, id, contextId }: IncomingMessage,
): Message | Task {
  if (reply.kind === 'question')
    return buildSingleTask({ id, contextId, userMessage }, TaskState.TASK_STATE_INPUT_REQUIRED, reply.parts);
  return buildAgentMessage({ contextId, taskId: '' }, reply.parts);
}

/** Omits token and credentials, which are write-only: a reader could use them only to impersonate this service. */
function toWireConfig(
  taskId: string,
  { id, url, authentication }: Pick<PushConfig, 'id' | 'url' | 'authentication'>,
): TaskPushNotificationConfig {
  const scheme = authentication === undefined ? undefined : { scheme: authentication.scheme, credentials: '' };
  return { tenant: '', taskId, id, url, token: '', authentication: scheme };
}

/** Converts any problem outside a tool call to an A2A error with its text, fixes and slug. */
function toProtocolError(error: unknown, context: Pick<CallContext, 'log' | 'id'>): A2AError {
  if (error instanceof A2AError) return error;
  const problem = toProblem(error, context);
  const { type, errors } = problem;
  const fixes = errors.map(({ fix }) => fix);
  const options = {
    message: [problem.message, ...new Set(fixes)].join(' '),
    metadata: { problem: type.slug, request_id: context.id },
    cause: error,
  };
  if (type === unknownJob || type === unknownTool)
    return new TaskNotFoundError({
      ...options,
      message:
        'You have no task with this id: it belongs to another caller, has expired, or never was. Only the caller that started a task can read it.',
    });
  return type.status < 500 ? new RequestMalformedError(options) : new A2AError(options);
}

const maxPerCaller = 20;

/** Counts each caller's open task streams in this process. A stream costs little, and no caller needs many. */
export class OpenStreams {
  /** Open streams by caller. Callers with none have no entry. */
  readonly #open = new Map<string, number>();

  /** @returns the function to call when the stream ends; undefined if this caller has too many streams */
  take(caller: string): (() => void) | undefined {
    const open = this.#open.get(caller) ?? 0;
    if (open >= maxPerCaller) return undefined;
    this.#open.set(caller, open + 1);
    return () => {
      const left = (this.#open.get(caller) ?? 1) - 1;
      if (left === 0) this.#open.delete(caller);
      else this.#open.set(caller, left);
    };
  }
}

/** Passes events from a producer to a reader, in order. */
class Updates<Event> {
  readonly #waiting: Event[] = [];
  #wake = Promise.withResolvers<undefined>();
  #over = false;

  push(event: Event): void {
    this.#waiting.push(event);
    this.#wake.resolve(undefined);
  }

  /** Ends the sequence. */
  end(): void {
    this.#over = true;
    this.#wake.resolve(undefined);
  }

  /** Yields all events until the end, including those that are already queued. */
  async *readAll(): AsyncGenerator<Event, void, undefined> {
    for (;;) {
      yield* this.#waiting.splice(0);
      if (this.#over && this.#waiting.length === 0) return;
      await this.#wake.promise;
      this.#wake = Promise.withResolvers();
      if (this.#over) this.#wake.resolve(undefined);
    }
  }
}
