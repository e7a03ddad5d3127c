// Converts jobs to A2A tasks, events and pages: the result becomes an artifact, a problem the status message.
import { randomUUID } from 'node:crypto';
import {
  type Artifact,
  type Part,
  type StreamResponse,
  type Task,
  TaskState,
  type TaskStatus,
  type Message,
  type ListTasksRequest,
  type ListTasksResponse,
  Role,
} from '@a2a-js/sdk';
import { RequestMalformedError } from '@a2a-js/sdk/errors';
import { z } from 'zod';
import { type Problem, buildProblemBody } from '../../../lib/problem.ts';
import { jobCanceled, findProblemType } from '../../tools/index.ts';
import { a2aPath } from './agent-card.ts';
import type { AgentTask, AgentTasks, TaskFilter, AgentAnswer } from './calls.ts';
import type { CallContext } from '../../http/index.ts';

/** Context for a reported problem: base URL for its links, and the request id in the log. */
export interface ProblemSite {
  readonly baseUrl: string;
  readonly requestId: string;
}

/** Returns whether the task is in a final state. */
export function hasEnded({ state }: Pick<AgentTask, 'state'>): boolean {
  return state === 'done' || state === 'failed';
}

export function toTaskState(
  state: AgentTask['state'],
  problem: { slug: string; status: number } | undefined,
): TaskState {
  if (state === 'queued') return TaskState.TASK_STATE_SUBMITTED;
  if (state === 'running') return TaskState.TASK_STATE_WORKING;
  if (state === 'done') return TaskState.TASK_STATE_COMPLETED;
  if (problem?.slug === jobCanceled.slug) return TaskState.TASK_STATE_CANCELED;
  return toRefusedState(problem);
}

/** A call that the caller has to change is rejected. A call that failed on our side has failed, and may be repeated. */
function toRefusedState(problem: { status: number } | undefined): TaskState {
  return problem !== undefined && problem.status < 500 ? TaskState.TASK_STATE_REJECTED : TaskState.TASK_STATE_FAILED;
}

/** Builds the complete task. */
export function toTask(task: AgentTask, site: ProblemSite, metadata?: Record<string, unknown>): Task {
  const { id, contextId, progress } = task;
  const artifact = buildArtifact(task);
  return {
    id,
    contextId,
    artifacts: artifact === undefined ? [] : [artifact],
    history: [buildCallMessage(task)],
    metadata: { tool: task.tool, progress, ...metadata },
    status: toTaskStatus(task, site),
  };
}

/** Builds the last events of a stream: the result, if there is one, and the final status. */
export function endEvents(task: AgentTask, site: ProblemSite): StreamResponse[] {
  const { id: taskId, contextId } = task;
  const artifact = buildArtifact(task);
  const status: StreamResponse = {
    payload: {
      $case: 'statusUpdate',
      value: { taskId, contextId, status: toTaskStatus(task, site), metadata: undefined },
    },
  };
  if (artifact === undefined) return [status];
  const value = { taskId, contextId, artifact, append: false, lastChunk: true, metadata: undefined };
  return [{ payload: { $case: 'artifactUpdate', value } }, status];
}

/** Builds the event for one progress step. */
export function buildProgressEvent(
  { id: taskId, contextId }: AgentTask,
  { done, message }: { readonly done: number; readonly message: string },
): StreamResponse {
  const status = {
    state: TaskState.TASK_STATE_WORKING,
    timestamp: new Date().toISOString(),
    message: buildAgentMessage({ contextId, taskId }, [buildTextPart(message)]),
  };
  return {
    payload: { $case: 'statusUpdate', value: { taskId, contextId, status, metadata: { progress: done } } },
  };
}

/** Builds a task that is not stored: a question from the agent, or a rejected call. */
export function buildSingleTask(
  { id, contextId, userMessage }: { readonly id: string; readonly contextId: string; readonly userMessage: Message },
  state: TaskState,
  parts: Part[],
): Task {
  return {
    id,
    contextId,
    artifacts: [],
    history: [userMessage],
    metadata: undefined,
    status: {
      state,
      timestamp: new Date().toISOString(),
      message: buildAgentMessage({ contextId, taskId: id }, parts),
    },
  };
}

/** Returns the state and the message parts of a rejected call. */
export function buildRefusal(problem: Problem, { baseUrl, requestId }: ProblemSite): [TaskState, Part[]] {
  const parts = [buildTextPart(problem.message), buildDataPart(buildProblemBody(problem, baseUrl, a2aPath, requestId))];
  return [toRefusedState(problem.type), parts];
}

function toTaskStatus(task: AgentTask, site: ProblemSite): TaskStatus {
  const { id: taskId, contextId, state, at, message, problem } = task;
  const parts = problem === undefined ? buildStepParts(task, message) : buildRefusal(problem, site)[1];
  return {
    state: toTaskState(state, problem?.type),
    timestamp: at.toISOString(),
    message: parts.length === 0 ? undefined : buildAgentMessage({ contextId, taskId }, parts),
  };
}

function buildStepParts(task: AgentTask, message: string): Part[] {
  return hasEnded(task) || message === '' ? [] : [buildTextPart(message)];
}

function buildArtifact({ tool, answer }: AgentTask): Artifact | undefined {
  if (answer === undefined) return undefined;
  return {
    artifactId: 'result',
    name: tool,
    description: '',
    parts: buildAnswerParts(answer),
    metadata: undefined,
    extensions: [],
  };
}

const usualSize = 50;
const maxSize = 100;

/** Lists a page of the caller's tasks for ListTasks. @throws RequestMalformedError */
export async function listTaskPage(
  tasks: AgentTasks | undefined,
  params: ListTasksRequest,
  { context, ...site }: ProblemSite & { readonly context: CallContext },
): Promise<ListTasksResponse> {
  const size = params.pageSize ?? usualSize;
  if (!Number.isInteger(size) || size < 1 || size > maxSize)
    throw new RequestMalformedError(`pageSize must be 1 to ${maxSize}.`);
  checkHistoryLength(params);
  const empty = { tasks: [], total: 0, next: undefined };
  const page = tasks === undefined ? empty : await tasks.list({ size, ...toTaskFilter(params) }, context);
  const listed = page.tasks.map((task) => limitHistory(toTask(task, site), params));
  return {
    tasks: params.includeArtifacts === true ? listed : listed.map((task) => ({ ...task, artifacts: [] })),
    nextPageToken: page.next ?? '',
    pageSize: size,
    totalSize: page.total,
  };
}

function toTaskFilter({
  contextId,
  status,
  statusTimestampAfter,
  pageToken,
}: ListTasksRequest): Omit<TaskFilter, 'size'> {
  if (status === TaskState.UNRECOGNIZED) throw new RequestMalformedError('status is not a state of a task.');
  const after = z.iso.datetime({ offset: true }).optional().safeParse(statusTimestampAfter);
  if (!after.success)
    throw new RequestMalformedError('statusTimestampAfter must be a time such as 2026-01-01T00:00:00Z.');
  return {
    contextId: contextId === '' ? undefined : contextId,
    isListed: ({ state, problem }) =>
      status === TaskState.TASK_STATE_UNSPECIFIED ||
      toTaskState(state, problem === undefined ? undefined : findProblemType(problem)) === status,
    after: after.data === undefined ? undefined : new Date(after.data),
    token: pageToken === '' ? undefined : pageToken,
  };
}

interface HistoryWish {
  readonly historyLength?: number | undefined;
}

/** @throws RequestMalformedError */
export function checkHistoryLength(wish: HistoryWish | undefined): void {
  if ((wish?.historyLength ?? 0) < 0) throw new RequestMalformedError('historyLength must be 0 or more.');
}

/** Trims the history, which has at most one message: the call. @throws RequestMalformedError */
export function limitHistory(task: Task, wish: HistoryWish | undefined): Task {
  checkHistoryLength(wish);
  return wish?.historyLength === 0 ? { ...task, history: [] } : task;
}

export const buildTextPart = (text: string): Part => buildPart({ $case: 'text', value: text }, 'text/plain', '');
export const buildDataPart = (value: unknown): Part => buildPart({ $case: 'data', value }, 'application/json', '');

/** Builds the result of a call and its file, if any: inline, or as a link. */
export function buildAnswerParts({ answer, file }: AgentAnswer): Part[] {
  const parts = [buildDataPart(answer)];
  if (file?.bytes !== undefined)
    parts.push(buildPart({ $case: 'raw', value: Buffer.from(file.bytes) }, file.mediaType, file.name));
  else if (file?.url !== undefined) parts.push(buildPart({ $case: 'url', value: file.url }, file.mediaType, file.name));
  return parts;
}

/** Builds a message from the agent. */
export function buildAgentMessage(
  { contextId, taskId }: { readonly contextId: string; readonly taskId: string },
  parts: Part[],
): Message {
  return {
    messageId: randomUUID(),
    contextId,
    taskId,
    role: Role.ROLE_AGENT,
    parts,
    metadata: undefined,
    extensions: [],
    referenceTaskIds: [],
  };
}

/** Reconstructs the user's message that started a job. */
export function buildCallMessage({ id, contextId, tool, input }: AgentTask): Message {
  const message = buildAgentMessage({ contextId, taskId: id }, [buildDataPart({ tool, arguments: input })]);
  return { ...message, messageId: id, role: Role.ROLE_USER };
}

function buildPart(content: NonNullable<Part['content']>, mediaType: string, filename: string): Part {
  return { content, mediaType, filename, metadata: undefined };
}
