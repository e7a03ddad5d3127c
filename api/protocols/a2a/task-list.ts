// A page of a caller's tasks, as ListTasks asks for it.
import { type ListTasksRequest, type ListTasksResponse, TaskState } from '@a2a-js/sdk';
import { RequestMalformedError } from '@a2a-js/sdk/errors';
import { z } from 'zod';
import type { CallContext } from '../../http/index.ts';
import { jobProblemType } from '../../tools/index.ts';
import type { AgentTasks, TaskFilter } from './calls.ts';
import { checkHistoryLength, withHistory } from './history.ts';
import { type ProblemSite, stateOf, taskOf } from './task.ts';

const usualSize = 50;
const maxSize = 100;

export async function taskPage(
  tasks: AgentTasks | undefined,
  params: ListTasksRequest,
  { context, ...site }: ProblemSite & { readonly context: CallContext },
): Promise<ListTasksResponse> {
  const size = params.pageSize ?? usualSize;
  if (!Number.isInteger(size) || size < 1 || size > maxSize)
    throw new RequestMalformedError(`pageSize must be 1 to ${maxSize}.`);
  checkHistoryLength(params);
  const empty = { tasks: [], total: 0, next: undefined };
  const page = tasks === undefined ? empty : await tasks.list({ size, ...filterOf(params) }, context);
  const listed = page.tasks.map((task) => withHistory(taskOf(task, site), params));
  return {
    tasks: params.includeArtifacts === true ? listed : listed.map((task) => ({ ...task, artifacts: [] })),
    nextPageToken: page.next ?? '',
    pageSize: size,
    totalSize: page.total,
  };
}

function filterOf({ contextId, status, statusTimestampAfter, pageToken }: ListTasksRequest): Omit<TaskFilter, 'size'> {
  if (status === TaskState.UNRECOGNIZED) throw new RequestMalformedError('status is not a state of a task.');
  const after = z.iso.datetime({ offset: true }).optional().safeParse(statusTimestampAfter);
  if (!after.success)
    throw new RequestMalformedError('statusTimestampAfter must be a time such as 2026-01-01T00:00:00Z.');
  return {
    contextId: contextId === '' ? undefined : contextId,
    states: ({ state, problem }) =>
      status === TaskState.TASK_STATE_UNSPECIFIED ||
      stateOf(state, problem === undefined ? undefined : jobProblemType(problem)) === status,
    after: after.data === undefined ? undefined : new Date(after.data),
    token: pageToken === '' ? undefined : pageToken,
  };
}
