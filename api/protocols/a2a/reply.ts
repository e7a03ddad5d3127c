// The reply to one A2A message: parts of a message, a question, or the job of a tool that takes long.
import type { Message, Part } from '@a2a-js/sdk';
import { Problem } from '../../../lib/problem.ts';
import { type CallContext, callAppPath, internalFault, notFound } from '../../http/index.ts';
import { appPrefix } from './agent-card.ts';
import type { AgentCall, AgentJob, AgentOptions, InterpretationCost } from './calls.ts';
import { helpText, namesTool } from './help.ts';
import { dataPart, partsOf, textPart } from './parts.ts';
import { readRequest } from './request.ts';

/** Parts of a message, what the agent has to ask first, or a job. */
export type AgentReply =
  | { readonly kind: 'parts'; readonly parts: Part[] }
  | { readonly kind: 'question'; readonly parts: Part[] }
  | ({ readonly kind: 'job'; readonly metadata?: Record<string, unknown> } & AgentJob);

type Site = Pick<AgentCall, 'context' | 'contextId'>;

/** @throws Problem */
export async function replyTo(options: AgentOptions, message: Message, site: Site): Promise<AgentReply> {
  const { offer, call } = options;
  const request = readRequest(message, offer.tools);
  if (request.kind === 'words') return replyToWords(options, request.text, site);
  if (request.tool.startsWith(appPrefix))
    return { kind: 'parts', parts: [dataPart(aboutApp(request.tool.slice(appPrefix.length), offer))] };
  const result = await call({ tool: request.tool, arguments: request.arguments, ...site });
  return 'task' in result ? { kind: 'job', ...result } : { kind: 'parts', parts: partsOf(result) };
}

/** What is not a problem is a fault of ours, which shows nothing of its insides. */
export function toProblem(error: unknown, { log, id }: Pick<CallContext, 'log' | 'id'>): Problem {
  if (error instanceof Problem) return error;
  log.error({ err: error }, 'call failed');
  return new Problem(internalFault, `Something went wrong on our side. It is logged as ${id}.`, { cause: error });
}

/** A person or an agent that asks what there is. */
const asksForHelp = /^\W*help\W*$|what can (you|i) do|(which|what|list).*\b(tools|skills|capabilities)\b/i;

async function replyToWords({ offer, call, interpret }: AgentOptions, text: string, site: Site): Promise<AgentReply> {
  const help = helpText(offer, text);
  if (text.trim() === '' || asksForHelp.test(text)) return { kind: 'parts', parts: [textPart(help)] };
  if (interpret === undefined) {
    if (namesTool(offer, text)) return { kind: 'parts', parts: [textPart(help)] };
    return {
      kind: 'question',
      parts: [textPart(`Which tool is meant? Words are not read here, since no model router is connected. ${help}`)],
    };
  }
  const meant = await interpret(text, site.context);
  if (meant.kind === 'unsure')
    return {
      kind: 'question',
      parts: [
        textPart(
          `${meant.question} Send the whole request again with what is missing. ${costText(meant.cost)}\n\n${help}`,
        ),
        dataPart({ interpretation: meant.cost }),
      ],
    };
  const { tool, arguments: given, cost } = meant;
  const interpretation = { tool, arguments: given, ...cost };
  try {
    const result = await call({ tool, arguments: given, ...site });
    if ('task' in result) return { kind: 'job', ...result, metadata: { interpretation } };
    const said = `Read as ${tool} ${JSON.stringify(given)}. ${costText(cost)}`;
    const answer = { ...result.answer, interpretation };
    return { kind: 'parts', parts: [...partsOf({ answer, file: result.file }), textPart(said)] };
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
  return { ...app, call_url: `${baseUrl}${callAppPath.replace('{slug}', slug)}` };
}
