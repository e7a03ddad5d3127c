// The executor of one A2A message. Work ends within the request, so every result is a message and no task is stored.
import { randomUUID } from 'node:crypto';
import { Role, TaskState, type Message, type Part, type Task } from '@a2a-js/sdk';
import { AgentEvent, type AgentExecutor, type RequestContext as A2aContext } from '@a2a-js/sdk/server';
import { problemBody, Problem } from '../../lib/problem.ts';
import { callPath, internalFault, notFound, type RequestContext } from '../http/index.ts';
import { a2aPath, appPrefix } from './agent-card.ts';
import type { AgentAnswer, AgentOptions, InterpretationCost } from './calls.ts';
import { helpText, namesTool } from './help.ts';
import { readRequest } from './request.ts';

type Context = Omit<RequestContext, 'mediaType'>;

/**
 * Executes one request. A client error ends as a rejected task, a server error as a failed one; both carry the problem.
 */
export function executorFor(options: AgentOptions, context: Context): AgentExecutor {
  return {
    async execute(a2aContext, bus) {
      try {
        const reply = await answer(options, a2aContext, context);
        bus.publish(
          Array.isArray(reply)
            ? AgentEvent.message(messageOf(a2aContext, reply, ''))
            : AgentEvent.task(taskOf(a2aContext, TaskState.TASK_STATE_INPUT_REQUIRED, reply.question)),
        );
      } catch (error) {
        bus.publish(AgentEvent.task(refusal(toProblem(error, context), a2aContext, options.offer.baseUrl, context.id)));
      }
      bus.finished();
    },
    cancelTask: () => Promise.resolve(),
  };
}

/** Parts of a message, or what the agent has to ask first. */
type AgentReply = Part[] | { readonly question: Part[] };

async function answer(options: AgentOptions, { userMessage }: A2aContext, context: Context): Promise<AgentReply> {
  const { offer, call } = options;
  const request = readRequest(userMessage, offer.tools);
  if (request.kind === 'words') return answerWords(options, request.text, context);
  if (request.tool.startsWith(appPrefix)) return [dataPart(aboutApp(request.tool.slice(appPrefix.length), offer))];
  return partsOf(await call({ tool: request.tool, arguments: request.arguments, context }));
}

/** A person or an agent that asks what there is. */
const asksForHelp = /^\W*help\W*$|what can (you|i) do|(which|what|list).*\b(tools|skills|capabilities)\b/i;

async function answerWords(
  { offer, call, interpret }: AgentOptions,
  text: string,
  context: Context,
): Promise<AgentReply> {
  const help = helpText(offer, text);
  if (text.trim() === '' || asksForHelp.test(text)) return [textPart(help)];
  if (interpret === undefined) {
    if (namesTool(offer, text)) return [textPart(help)];
    return {
      question: [textPart(`Which tool is meant? Words are not read here, since no model router is connected. ${help}`)],
    };
  }
  const meant = await interpret(text, context);
  if (meant.kind === 'unsure')
    return {
      question: [
        textPart(
          `${meant.question} Send the whole request again with what is missing. ${costText(meant.cost)}\n\n${help}`,
        ),
        dataPart({ interpretation: meant.cost }),
      ],
    };
  const { tool, arguments: given, cost } = meant;
  const interpretation = { tool, arguments: given, ...cost };
  try {
    const { answer: result, file } = await call({ tool, arguments: given, context });
    const said = `Read as ${tool} ${JSON.stringify(given)}. ${costText(cost)}`;
    return [...partsOf({ answer: { ...result, interpretation }, file }), textPart(said)];
  } catch (error) {
    if (!(error instanceof Problem)) throw error;
    const { type, message, errors, headers, members } = error;
    throw new Problem(type, message, { errors, headers, members: { ...members, interpretation }, cause: error });
  }
}

/** What reading the words cost, in addition to the call itself. */
function costText({ model, cost_usd: cost }: InterpretationCost): string {
  const by = model === undefined ? 'A model' : `The model ${model}`;
  return `${by} read the words; ${cost === undefined ? 'what that costs is not known yet' : `that cost $${cost}, in addition to the call`}.`;
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
  return taskOf(a2aContext, state, [textPart(problem.message), dataPart(body)]);
}

function taskOf(a2aContext: A2aContext, state: TaskState, parts: Part[]): Task {
  return {
    id: a2aContext.taskId,
    contextId: a2aContext.contextId,
    artifacts: [],
    history: [a2aContext.userMessage],
    metadata: undefined,
    status: {
      state,
      timestamp: new Date().toISOString(),
      message: messageOf(a2aContext, parts, a2aContext.taskId),
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
