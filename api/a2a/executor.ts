// The executor of one A2A message. Work ends within the request, so every result is a message and no task is stored.
import { randomUUID } from 'node:crypto';
import { Role, TaskState, type Message, type Part, type Task } from '@a2a-js/sdk';
import {
  AgentEvent,
  type AgentExecutor,
  type ExecutionEventBus,
  type RequestContext as A2aContext,
} from '@a2a-js/sdk/server';
import { problemBody, Problem } from '../../lib/problem.ts';
import { callPath, internalFault, notFound, type RequestContext } from '../http/index.ts';
import { a2aPath, appPrefix } from './agent-card.ts';
import type { AgentAnswer, AgentOptions } from './calls.ts';
import { helpText } from './help.ts';
import { readRequest } from './request.ts';

type Context = Omit<RequestContext, 'mediaType'>;

/**
 * Executes one request. A client error ends as a rejected task, a server error as a failed one; both carry the problem.
 */
export function executorFor(options: AgentOptions, context: Context): AgentExecutor {
  return {
    async execute(a2aContext, bus) {
      try {
        publish(bus, a2aContext, await answer(options, a2aContext, context));
      } catch (error) {
        bus.publish(AgentEvent.task(refusal(toProblem(error, context), a2aContext, options.offer.baseUrl, context.id)));
      }
      bus.finished();
    },
    cancelTask: () => Promise.resolve(),
  };
}

async function answer({ offer, call }: AgentOptions, { userMessage }: A2aContext, context: Context): Promise<Part[]> {
  const request = readRequest(userMessage);
  if (request.kind === 'help') return [textPart(helpText(offer, request.text))];
  if (request.tool.startsWith(appPrefix)) return [dataPart(aboutApp(request.tool.slice(appPrefix.length), offer))];
  return partsOf(await call({ tool: request.tool, arguments: request.arguments, context }));
}

/** Apps are not called through the agent; it returns their URLs. */
function aboutApp(slug: string, { apps, baseUrl }: AgentOptions['offer']): Record<string, unknown> {
  const app = apps().find((one) => one.slug === slug);
  if (app === undefined)
    throw new Problem(
      notFound,
      `No live app is named ${JSON.stringify(slug.slice(0, 60))}. ${baseUrl}/agent-capabilities.json lists all live apps.`,
    );
  return { ...app, call_url: `${baseUrl}${callPath.replace('{slug}', slug)}` };
}

function partsOf({ answer: given, file }: AgentAnswer): Part[] {
  const parts = [dataPart(given)];
  if (file?.bytes !== undefined)
    parts.push(part({ $case: 'raw', value: Buffer.from(file.bytes) }, file.mediaType, file.name));
  else if (file?.url !== undefined) parts.push(part({ $case: 'url', value: file.url }, file.mediaType, file.name));
  return parts;
}

function publish(bus: ExecutionEventBus, a2aContext: A2aContext, parts: Part[]): void {
  bus.publish(AgentEvent.message(messageOf(a2aContext, parts, '')));
}

function messageOf({ contextId }: A2aContext, parts: Part[], taskId: string): Message {
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

function refusal(problem: Problem, a2aContext: A2aContext, baseUrl: string, id: string): Task {
  const body = problemBody(problem, baseUrl, a2aPath, id);
  const state = problem.type.status < 500 ? TaskState.TASK_STATE_REJECTED : TaskState.TASK_STATE_FAILED;
  return {
    id: a2aContext.taskId,
    contextId: a2aContext.contextId,
    artifacts: [],
    history: [a2aContext.userMessage],
    metadata: undefined,
    status: {
      state,
      timestamp: new Date().toISOString(),
      message: messageOf(a2aContext, [textPart(problem.message), dataPart(body)], a2aContext.taskId),
    },
  };
}

function toProblem(error: unknown, { log, id }: Context): Problem {
  if (error instanceof Problem) return error;
  log.error({ err: error }, 'call failed');
  return new Problem(internalFault, `Something went wrong on our side. It is logged as ${id}.`, { cause: error });
}

const textPart = (text: string): Part => part({ $case: 'text', value: text }, 'text/plain', '');
const dataPart = (value: unknown): Part => part({ $case: 'data', value }, 'application/json', '');

function part(content: NonNullable<Part['content']>, mediaType: string, filename: string): Part {
  return { content, mediaType, filename, metadata: undefined };
}
