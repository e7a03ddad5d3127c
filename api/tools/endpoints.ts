// GET and POST /t/<tool> of every tool, GET /t, and what is said of a tool that there is not.
import Negotiator from 'negotiator';
import { z } from 'zod';
import type { ProblemType } from '../../lib/problem.ts';
import { defineEndpoint, type Endpoint, type RequestContext } from '../http/endpoint.ts';
import * as billing from '../billing/problems.ts';
import * as models from '../models/problems.ts';
import { rateLimitHeaders } from '../billing/quota.ts';
import type { Payer } from '../billing/payer.ts';
import type { Answered } from './engine/tool-call.ts';
import type { Desk } from './engine/tool-service.ts';
import { unknownFile } from './engine/artifacts/problems.ts';
import { envelopeOf, envelopeSchema } from './engine/envelope.ts';
import { fetchProblems } from './fetch/problems.ts';
import { jobProblems } from './engine/jobs/problems.ts';
import { listEndpoint } from './list.ts';
import type { PayerFor } from '../models/callers/payers.ts';
import * as problems from './problems.ts';
import { serviceOff } from './services/backing-services.ts';
import { costHeaders, rawResponse, refuseRaw } from './engine/raw.ts';
import { ToolReader, type Reading } from './engine/reading.ts';
import type { Kept, Replays } from './engine/replays.ts';
import { limitOf } from './engine/runner.ts';
import { formatMoney, parseMoney } from '../billing/ledger/money.ts';
import type { Tool } from './tool.ts';
import type { Toolbox } from './engine/tool-registry.ts';

export interface ToolEndpointsOptions {
  readonly toolbox: Toolbox;
  readonly desk: Desk;
  readonly payerFor: PayerFor;
  readonly replays: Replays;
  readonly baseUrl: string;
}

/** Longest JSON body of a call. */
const bodyLimit = 1_500_000;
const json = 'application/json';

export function toolEndpoints(options: ToolEndpointsOptions): Endpoint[] {
  const { toolbox, baseUrl } = options;
  return [
    listEndpoint(toolbox, baseUrl),
    ...toolbox.tools.flatMap((tool) => endpointsOf(tool, options)),
    ...unknownEndpoints(toolbox),
  ];
}

function endpointsOf(tool: Tool, options: ToolEndpointsOptions): [Endpoint, Endpoint] {
  const reader = new ToolReader(tool);
  const name = pascal(tool.name);
  const common = {
    path: `/t/${tool.name}`,
    tag: 'tools',
    summary: tool.title,
    description: `${describe(tool)} With an Idempotency-Key (header), the same call sent again within a day is answered as before, and is run and charged once.`,
    output: envelopeSchema(tool),
    outputDescription:
      tool.artifacts === undefined
        ? 'The result, with what it cost.'
        : 'The result, with what it cost; with raw=1, the bytes of its file.',
    produces: [json, ...(tool.artifacts ?? [])],
    problems: problemsOf(tool),
  };
  return [
    defineEndpoint({
      ...common,
      method: 'GET',
      operation: `call${name}`,
      query: reader.shown,
      read: ({ query }) => ({
        params: {},
        query: reader.read('query', query) as unknown as Record<string, unknown>,
        body: undefined,
      }),
      handler: ({ query }, context) => answer(tool, query as unknown as Reading, context, options),
      head: ({ query }, context) => foretell(tool, query as unknown as Reading, context, options),
    }),
    defineEndpoint({
      ...common,
      method: 'POST',
      operation: `post${name}`,
      query: reader.options,
      body: reader.shown,
      bodyLimit,
      read: ({ query, body }) => ({
        params: {},
        query: {},
        body: reader.readBoth(query, body) as unknown as Record<string, unknown>,
      }),
      handler: ({ body }, context) => answer(tool, body as unknown as Reading, context, options),
    }),
  ];
}

async function answer(
  tool: Tool,
  reading: Reading,
  context: RequestContext,
  { desk, payerFor, replays }: ToolEndpointsOptions,
): Promise<Response> {
  // Who accepts no JSON wants the file.
  const fileWanted = reading.options.raw ?? !acceptsJson(context);
  const payer = await payerFor(context);
  const once = replays.wanted(context, reading);
  const ask = (given: Reading, signal: () => AbortSignal): Promise<Answered> =>
    desk.answer({
      tool,
      reading: given,
      payer,
      via: 'http',
      id: context.id,
      signal,
      log: context.log,
      fileWanted,
      linkWanted: !fileWanted || once,
      waitMs: 0,
    });
  if (!once) return respond(await ask(reading, () => context.signal), payer, fileWanted);
  let fresh: Answered | undefined;
  const { value, replayed } = await replays.once(context, { tool, reading, payer, fileWanted }, async (signal) =>
    keptOf((fresh = await ask(reading, () => signal)), payer),
  );
  if (!replayed && fresh !== undefined) return respond(fresh, payer, fileWanted);
  const headers = { ...value.headers, 'idempotent-replayed': 'true' };
  if (value.job !== undefined)
    return respond(
      await ask({ ...reading, options: { ...reading.options, job: value.job } }, () => context.signal),
      payer,
      fileWanted,
      headers,
    );
  return fileWanted ? rawResponse(await replays.file(value), headers) : Response.json(value.envelope, { headers });
}

function headersOf({ ran }: Answered, payer: Payer): Record<string, string> {
  return {
    'cache-control': 'no-store',
    ...rateLimitHeaders(ran?.quota, payer, Date.now()),
    ...(ran === undefined ? {} : costHeaders(ran.cost)),
  };
}

function respond(
  answered: Answered,
  payer: Payer,
  fileWanted: boolean,
  more: Readonly<Record<string, string>> = {},
): Response {
  const headers = { ...headersOf(answered, payer), ...more };
  const artifact = answered.ran?.artifact;
  return fileWanted && artifact !== undefined
    ? rawResponse(artifact, headers)
    : Response.json(envelopeOf(answered, true), { headers });
}

function keptOf(answered: Answered, payer: Payer): Kept {
  const {
    job,
    told: { fileId },
  } = answered;
  return {
    envelope: envelopeOf(answered, true),
    headers: headersOf(answered, payer),
    ...(job === undefined ? {} : { job: job.id }),
    ...(fileId === undefined ? {} : { file: fileId }),
  };
}

/**
 * HEAD: whether GET would be taken, without running the tool and without charge. Refused with 405 it would have link
 * checkers and previews
 * try GET instead. What is known only once the tool has run, such as the length, is left out, as RFC 9110 (9.3.2)
 * allows.
 */
async function foretell(
  tool: Tool,
  { options: { raw } }: Reading,
  context: RequestContext,
  { toolbox, payerFor }: ToolEndpointsOptions,
): Promise<Response> {
  toolbox.refuseOff(tool);
  await payerFor(context);
  const fileWanted = raw ?? !acceptsJson(context);
  if (fileWanted) refuseRaw(tool);
  return new Response(null, {
    headers: { 'cache-control': 'no-store', ...(fileWanted ? {} : { 'content-type': json }) },
  });
}

function acceptsJson({ mediaType, headers }: RequestContext): boolean {
  return (
    mediaType === json ||
    new Negotiator({ headers: { accept: headers.get('accept') ?? undefined } }).mediaType([json]) !== undefined
  );
}

/** Also for names that nobody has yet: they are told which tools there are. */
function unknownEndpoints(toolbox: Toolbox): Endpoint[] {
  return (['GET', 'POST'] as const).map((method) =>
    defineEndpoint({
      method,
      path: '/t/{tool}',
      operation: method === 'GET' ? 'callUnknownTool' : 'postUnknownTool',
      tag: 'tools',
      summary: 'A tool that there is not',
      description:
        'Every tool has a path of its own; any other name is answered with the names that are written most like it.',
      params: z.object({ tool: z.string().describe('Name of a tool') }),
      query: z.looseObject({}),
      output: z.never(),
      outputDescription: 'Never answered.',
      problems: [problems.unknownTool],
      handler: ({ params }) => Promise.reject(refusal(() => toolbox.get(params.tool))),
    }),
  );
}

function refusal(attempt: () => unknown): Error {
  try {
    attempt();
  } catch (error) {
    if (error instanceof Error) return error;
  }
  return new Error('a tool with this name has no endpoint');
}

/** What the documents say of a tool: its own words, its price, and what is true of every tool. */
export function describe(tool: Tool): string {
  const price = parseMoney(tool.price);
  const aliases = Object.entries(tool.aliases).map(([alias, field]) => `\`${alias}\` for \`${field}\``);
  return [
    tool.description,
    `Price: ${price === 0n ? 'nothing' : `${formatMoney(price)} USD a call`}${tool.asksModels === true ? ', and what its model calls are billed' : ''}; a call that fails is not charged for. Ends after ${limitOf(tool) / 1000} s.`,
    ...(aliases.length === 0 ? [] : [`Also taken: ${aliases.join(', ')}.`]),
  ].join(' ');
}

function problemsOf(tool: Tool): ProblemType[] {
  return [
    billing.quotaExhausted,
    models.keyRefused,
    models.modelsUnconfigured,
    models.routerUnavailable,
    billing.ledgerUnavailable,
    billing.ledgerUnconfigured,
    problems.toolFailed,
    problems.toolLimit,
    problems.unprocessable,
    problems.noArtifact,
    problems.toolBusy,
    problems.tooManyCalls,
    billing.idempotencyInFlight,
    billing.idempotencyMismatch,
    unknownFile,
    ...(tool.needs === undefined ? [] : [serviceOff]),
    ...(tool.openWorld ? fetchProblems : []),
    ...(tool.long === true ? jobProblems : []),
    ...(tool.asksModels === true
      ? [models.keyRequired, models.keyOutOfCredit, models.modelFailed, models.modelTimeout, models.modelRefused]
      : []),
  ];
}

function pascal(name: string): string {
  return name
    .split('_')
    .map((word) => word.charAt(0).toUpperCase() + word.slice(1))
    .join('');
}
