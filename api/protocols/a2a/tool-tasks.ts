// The jobs of tools as the tasks of agents: any replica reads them, for the key that began one or, without a key, for
// anyone who has its id.
import { isUnguessable, type Payer } from '../../billing/index.ts';
import { type CallContext, invalidRequest } from '../../http/index.ts';
import { Problem } from '../../../lib/problem.ts';
import type { Jobs, ToolService } from '../../tools/index.ts';
import type { PayerFor } from '../../models/index.ts';
import type { AgentTask, AgentTasks } from './calls.ts';
import { agentTask } from './tool-answers.ts';

export interface ToolTasksOptions {
  readonly toolService: ToolService;
  readonly jobs: Pick<Jobs, 'find' | 'list' | 'listOfContext' | 'cancel'>;
  readonly payerFor: PayerFor;
}

export function toolTasks({ toolService, jobs, payerFor }: ToolTasksOptions): AgentTasks {
  const now = { waitMs: 0 };
  const follow = async (
    { id, tool }: { readonly id: string; readonly tool: string },
    context: CallContext,
    { waitMs, report }: Pick<Parameters<AgentTasks['follow']>[1], 'waitMs' | 'report'>,
  ): Promise<AgentTask> => {
    const payer = await payerFor(context);
    const name = { id, tool, owner: payer.owner };
    const { id: requestId, signal } = context;
    return agentTask(tool, await toolService.follow(name, { requestId, payer, waitMs, signal, report }));
  };
  return {
    async view(id, context) {
      const { owner } = await payerFor(context);
      return follow(await jobs.find(id, owner), context, now);
    },
    async follow(task, { context, waitMs, report }) {
      return follow(task, context, { waitMs, ...(report === undefined ? {} : { report }) });
    },
    async cancel(id, context) {
      const { owner } = await payerFor(context);
      const { tool } = await jobs.find(id, owner);
      const canceled = await jobs.cancel({ id, tool, owner });
      return { task: await follow({ id, tool }, context, now), canceled };
    },
    async list({ contextId, states, after, size, token }, context) {
      const entries = (await listEntries(jobs, await payerFor(context), contextId)).filter(
        ({ id, context: own = id, at, ...rest }) =>
          (contextId === undefined || own === contextId) && (after === undefined || at >= after) && states(rest),
      );
      const since = token === undefined ? 0 : entries.findIndex(({ id }) => id === token) + 1;
      if (token !== undefined && since === 0)
        throw new Problem(invalidRequest, 'pageToken names no task of this list. Ask for the first page again.');
      const page = entries.slice(since, since + size);
      const tasks = await Promise.all(page.map((entry) => follow(entry, context, now)));
      return {
        tasks,
        total: entries.length,
        next: since + size < entries.length ? page.at(-1)?.id : undefined,
      };
    },
  };
}

/**
 * Without a key, the caller is known by an address that is shared with others, so nothing is listed for it: only what
 * belongs to a conversation whose id nobody guesses, such as the one in our answer.
 */
async function listEntries(
  jobs: ToolTasksOptions['jobs'],
  { kind, owner }: Payer,
  contextId: string | undefined,
): ReturnType<Jobs['list']> {
  if (kind === 'key') return jobs.list(owner);
  return contextId !== undefined && isUnguessable(contextId) ? jobs.listOfContext(contextId) : [];
}
