// A job as a task of A2A: its state, its progress, its result as an artifact, its problem in the message of its status.
import {
  type Artifact,
  type Part,
  type StreamResponse,
  type Task,
  TaskState,
  type TaskStatus,
  type Message,
} from '@a2a-js/sdk';
import { type Problem, problemBody } from '../../../lib/problem.ts';
import { jobCanceled } from '../../tools/index.ts';
import { a2aPath } from './agent-card.ts';
import type { AgentTask } from './calls.ts';
import { agentMessage, callMessage, dataPart, partsOf, textPart } from './parts.ts';

/** Where a problem is reported: its links, and the request in the log. */
export interface ProblemSite {
  readonly baseUrl: string;
  readonly requestId: string;
}

/** Whether it will not change any more. */
export function hasEnded({ state }: Pick<AgentTask, 'state'>): boolean {
  return state === 'done' || state === 'failed';
}

export function stateOf(state: AgentTask['state'], problem: { slug: string; status: number } | undefined): TaskState {
  if (state === 'queued') return TaskState.TASK_STATE_SUBMITTED;
  if (state === 'running') return TaskState.TASK_STATE_WORKING;
  if (state === 'done') return TaskState.TASK_STATE_COMPLETED;
  if (problem?.slug === jobCanceled.slug) return TaskState.TASK_STATE_CANCELED;
  return refusedState(problem);
}

/** A call that the caller has to change is rejected; one that failed on our side may be sent again. */
function refusedState(problem: { status: number } | undefined): TaskState {
  return problem !== undefined && problem.status < 500 ? TaskState.TASK_STATE_REJECTED : TaskState.TASK_STATE_FAILED;
}

/** The task as it is sent as a whole. */
export function taskOf(task: AgentTask, site: ProblemSite, metadata?: Record<string, unknown>): Task {
  const { id, contextId, progress } = task;
  const artifact = artifactOf(task);
  return {
    id,
    contextId,
    artifacts: artifact === undefined ? [] : [artifact],
    history: [callMessage(task)],
    metadata: { tool: task.tool, progress, ...metadata },
    status: statusOf(task, site),
  };
}

/** The events of a stream that end it: the result, if there is one, and the final status. */
export function endEvents(task: AgentTask, site: ProblemSite): StreamResponse[] {
  const { id: taskId, contextId } = task;
  const artifact = artifactOf(task);
  const status: StreamResponse = {
    payload: {
      $case: 'statusUpdate',
      value: { taskId, contextId, status: statusOf(task, site), metadata: undefined },
    },
  };
  if (artifact === undefined) return [status];
  const value = { taskId, contextId, artifact, append: false, lastChunk: true, metadata: undefined };
  return [{ payload: { $case: 'artifactUpdate', value } }, status];
}

/** A step of a job that goes on. */
export function progressEvent(
  { id: taskId, contextId }: AgentTask,
  { done, message }: { readonly done: number; readonly message: string },
): StreamResponse {
  const status = {
    state: TaskState.TASK_STATE_WORKING,
    timestamp: new Date().toISOString(),
    message: agentMessage({ contextId, taskId }, [textPart(message)]),
  };
  return {
    payload: { $case: 'statusUpdate', value: { taskId, contextId, status, metadata: { progress: done } } },
  };
}

/** A task that nothing more is known of: a question of ours, or a call that was refused. */
export function singleTask(
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
    status: { state, timestamp: new Date().toISOString(), message: agentMessage({ contextId, taskId: id }, parts) },
  };
}

/** The state and the parts of a call that was refused. */
export function refusalOf(problem: Problem, { baseUrl, requestId }: ProblemSite): [TaskState, Part[]] {
  const parts = [textPart(problem.message), dataPart(problemBody(problem, baseUrl, a2aPath, requestId))];
  return [refusedState(problem.type), parts];
}

function statusOf(task: AgentTask, site: ProblemSite): TaskStatus {
  const { id: taskId, contextId, state, at, message, problem } = task;
  const parts = problem === undefined ? stepOf(task, message) : refusalOf(problem, site)[1];
  return {
    state: stateOf(state, problem?.type),
    timestamp: at.toISOString(),
    message: parts.length === 0 ? undefined : agentMessage({ contextId, taskId }, parts),
  };
}

function stepOf(task: AgentTask, message: string): Part[] {
  return hasEnded(task) || message === '' ? [] : [textPart(message)];
}

function artifactOf({ tool, answer }: AgentTask): Artifact | undefined {
  if (answer === undefined) return undefined;
  return {
    artifactId: 'result',
    name: tool,
    description: '',
    parts: partsOf(answer),
    metadata: undefined,
    extensions: [],
  };
}
