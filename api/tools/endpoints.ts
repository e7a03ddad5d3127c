// Endpoints of tools: GET and POST /t/<tool> for every tool, GET /t, and a 404 for unknown names.
import Negotiator from 'negotiator';
import { z } from 'zod';
import type { ProblemType } from '../../lib/problem.ts';
import {
  defineEndpoint,
  type Endpoint,
  fileBodyLimit,
  createJsonResponse,
  methodNotAllowed,
  type RequestContext,
  readIdempotencyKey,
} from '../http/index.ts';
import {
  formatMoney,
  idempotencyInFlight,
  idempotencyMismatch,
  parseMoney,
  type Payer,
  quotaExhausted,
  formatQuotaHeaders,
  type Replays,
  replayHeaders,
} from '../billing/index.ts';
import {
  keyOutOfCredit,
  keyRequired,
  modelFailed,
  modelRefused,
  modelTimeout,
  type PayerFor,
  payerProblems,
} from '../models/index.ts';
import type { Delivery, ToolResult, ToolService, ToolRegistry } from './engine/tool-service.ts';
import type { ArtifactStore } from './engine/artifacts.ts';
import * as problems from './problems.ts';
import { unknownFile, fetchProblems, jobProblems } from './problems.ts';
import {
  toEnvelope,
  createEnvelopeSchema,
  storedResponse,
  type StoredResponse,
  costHeaderFields,
  formatCostHeaders,
  toJobCost,
  createRawResponse,
  readStoredFile,
  refuseRaw,
  formatWarningsHeader,
  readWarnings,
} from './engine/response.ts';
import { defineListEndpoint } from './list.ts';
import { refuseForeignChange, ToolReader, type Reading } from './engine/reading.ts';
import { getTimeLimitMs } from './engine/runner.ts';
import type { Tool } from './tool.ts';

export interface ToolEndpointsOptions {
  readonly toolRegistry: ToolRegistry;
  readonly toolService: ToolService;
  readonly payerFor: PayerFor;
  readonly replays: Replays;
  readonly artifacts: Pick<ArtifactStore, 'get'>;
  readonly baseUrl: string;
}

const json = 'application/json';

export function createToolEndpoints(options: ToolEndpointsOptions): Endpoint[] {
  const { toolRegistry, baseUrl } = options;
  return [
    defineListEndpoint(toolRegistry, baseUrl),
    ...toolRegistry.tools.flatMap((tool) => defineCallEndpoints(tool, options)),
    ...defineUnknownToolEndpoints(toolRegistry),
  ];
}

function defineCallEndpoints(tool: Tool, options: ToolEndpointsOptions): [Endpoint, Endpoint] {
  const reader = new ToolReader(tool);
  const name = toPascalCase(tool.name);
  const common = {
    path: `/t/${tool.name}`,
    tag: 'tools',
    summary: tool.title,
    description: `${describeTool(tool)} Send an Idempotency-Key header to make retries safe: the same call sent again within 24 hours returns the stored response and is charged once.`,
    output: createEnvelopeSchema(tool),
    outputDescription:
      tool.artifacts === undefined
        ? 'The result and its cost.'
        : 'The result and its cost; with raw=1, the bytes of the file, and warnings as a JSON list in the header x-warnings.',
    produces: [json, ...(tool.artifacts ?? [])],
    // A tool that stores data stores it per caller.
    ...(tool.writes === true ? { readsOwnData: true } : {}),
    responseHeaders: {
      ...costHeaderFields,
      'X-Warnings': 'What was ignored of the call or may not look as intended, as a JSON list of texts.',
      ...(tool.artifacts === undefined
        ? {}
        : {
            'Content-Disposition': 'With raw=1: the name of the file.',
            'Content-Security-Policy': 'With raw=1: keeps a file from running anything in a browser.',
          }),
    },
    problems: listProblems(tool),
    problemHeaders: costHeaderFields,
  };
  return [
    defineEndpoint({
      ...common,
      method: 'GET',
      operation: `call${name}`,
      query: reader.shown,
      description: `${common.description} Unknown query parameters are ignored, and listed in warnings and in the header x-warnings.`,
      read: ({ query }) => reader.readLink(query),
      handler: (reading, context) => answerCall(tool, reading, context, options),
      head: (reading, context) => answerHead(tool, reading, context, options),
    }),
    defineEndpoint({
      ...common,
      method: 'POST',
      operation: `post${name}`,
      query: reader.options,
      body: reader.shown,
      bodyLimit: fileBodyLimit,
      read: ({ query, body }) => reader.readBoth(query, body),
      handler(reading, context) {
        refuseForeignChange(tool, reading, context.headers);
        return answerCall(tool, reading, context, options);
      },
    }),
  ];
}

async function answerCall(
  tool: Tool,
  reading: Reading,
  context: RequestContext,
  { toolService, payerFor, replays, artifacts }: ToolEndpointsOptions,
): Promise<Response> {
  // A caller that does not accept JSON gets the file.
  const fileWanted = reading.options.raw ?? !isJsonAccepted(context);
  const payer = await payerFor(context);
  const { options, input } = reading;
  // Polling a job is free and must return its current status, so it is never replayed.
  const once = readIdempotencyKey(context.headers) !== undefined && options.job === undefined;
  const ask = (given: Reading, signal: () => AbortSignal): Promise<ToolResult> =>
    toolService.call({
      tool,
      reading: given,
      payer,
      via: 'http',
      id: context.id,
      signal,
      log: context.log,
      delivery: selectDelivery(fileWanted, once),
      waitMs: 0,
    });
  if (!once) return respond(await ask(reading, () => context.signal), payer, fileWanted);
  let fresh: ToolResult | undefined;
  const { value, replayed } = await replays.once(context, {
    payer,
    body: { tool: tool.name, options, input, fileWanted },
    answer: storedResponse,
    run: async (signal) => toStored((fresh = await ask(reading, () => signal)), payer),
  });
  if (!replayed && fresh !== undefined) return respond(fresh, payer, fileWanted);
  const headers = { ...value.headers, ...replayHeaders(replayed) };
  if (value.job !== undefined)
    return respond(
      await ask({ ...reading, options: { ...reading.options, job: value.job } }, () => context.signal),
      payer,
      fileWanted,
      headers,
    );
  return fileWanted
    ? createRawResponse(await readStoredFile(artifacts, value.file), headers)
    : createJsonResponse(value.envelope, { headers });
}

function selectDelivery(fileWanted: boolean, once: boolean): Delivery {
  if (!fileWanted) return 'json';
  return once ? 'link' : 'file';
}

function formatHeaders({ run, job, quota, meta }: ToolResult, payer: Payer): Record<string, string> {
  return {
    'cache-control': 'no-store',
    ...formatWarningsHeader([...(meta.warnings ?? []), ...readWarnings(run?.result)]),
    ...formatQuotaHeaders(quota, payer, Date.now()),
    ...(run === undefined ? {} : formatCostHeaders(run.cost)),
    ...(run === undefined && job !== undefined ? formatCostHeaders(toJobCost(job)) : {}),
  };
}

function respond(
  answered: ToolResult,
  payer: Payer,
  fileWanted: boolean,
  more: Readonly<Record<string, string>> = {},
): Response {
  const headers = { ...formatHeaders(answered, payer), ...more };
  const artifact = answered.run?.artifact;
  return fileWanted && artifact !== undefined
    ? createRawResponse(artifact, headers)
    : createJsonResponse(toEnvelope(answered, true), { headers });
}

function toStored(answered: ToolResult, payer: Payer): StoredResponse {
  const {
    job,
    meta: { fileId },
  } = answered;
  return {
    envelope: toEnvelope(answered, true),
    headers: formatHeaders(answered, payer),
    ...(job === undefined ? {} : { job: job.id }),
    ...(fileId === undefined ? {} : { file: fileId }),
  };
}

/**
 * Answers HEAD: whether GET would be accepted, without running the tool and without charge. A 405 would make link checkers and
 * previews try GET instead. Headers known only after the tool has run, such as the length, are left out, as RFC 9110
 * (9.3.2) allows.
 */
async function answerHead(
  tool: Tool,
  { options: { raw } }: Reading,
  context: RequestContext,
  { toolRegistry, payerFor }: ToolEndpointsOptions,
): Promise<Response> {
  toolRegistry.assertServiceOn(tool);
  await payerFor(context);
  const fileWanted = raw ?? !isJsonAccepted(context);
  if (fileWanted) refuseRaw(tool);
  return new Response(null, {
    headers: { 'cache-control': 'no-store', ...(fileWanted ? {} : { 'content-type': json }) },
  });
}

function isJsonAccepted({ mediaType, headers }: RequestContext): boolean {
  return (
    mediaType === json ||
    new Negotiator({ headers: { accept: headers.get('accept') ?? undefined } }).mediaType([json]) !== undefined
  );
}

/** Rejects any other name, and suggests the tools with the most similar names. */
function defineUnknownToolEndpoints(toolRegistry: ToolRegistry): Endpoint[] {
  return (['GET', 'POST'] as const).map((method) =>
    defineEndpoint({
      method,
      path: '/t/{tool}',
      operation: method === 'GET' ? 'callUnknownTool' : 'postUnknownTool',
      tag: 'tools',
      summary: 'Call an unknown tool',
      description:
        'Every tool has its own path. Any other name gets a 404 problem that lists the tools with the most similar names.',
      params: z.object({ tool: z.string().describe('Name of the tool.') }),
      query: z.looseObject({}),
      output: z.never(),
      outputDescription: 'Never returned.',
      problems: [problems.unknownTool],
      problemHeaders: costHeaderFields,
      ...(method === 'GET' ? { head: 'as GET' as const } : {}),
      handler: ({ params }) => Promise.reject(catchError(() => toolRegistry.get(params.tool))),
    }),
  );
}

function catchError(attempt: () => unknown): Error {
  try {
    attempt();
  } catch (error) {
    if (error instanceof Error) return error;
  }
  return new Error('The tool with this name has no endpoint.');
}

/** A tool's description in the documentation: its own text, price, time limit and aliases. */
export function describeTool(tool: Tool): string {
  const aliases = Object.entries(tool.aliases).map(([alias, field]) => `\`${alias}\` for \`${field}\``);
  return [
    tool.description,
    describeTerms(tool),
    ...(aliases.length === 0 ? [] : [`Accepted aliases: ${aliases.join(', ')}.`]),
  ].join(' ');
}

function describeTerms(tool: Tool): string {
  const price = parseMoney(tool.price);
  return `Price: ${price === 0n ? 'free' : `${formatMoney(price)} USD per call`}${tool.asksModels === true ? ', plus the billed cost of its model calls' : ''}. A failed call is not charged${tool.asksModels === true ? ', apart from model calls already made' : ''}. Time limit: ${getTimeLimitMs(tool) / 1000} s.`;
}

function listProblems(tool: Tool): ProblemType[] {
  return [
    quotaExhausted,
    ...payerProblems,
    problems.toolFailed,
    problems.serviceTimeout,
    problems.toolLimit,
    problems.unprocessable,
    problems.noArtifact,
    problems.toolBusy,
    problems.tooManyCalls,
    idempotencyInFlight,
    idempotencyMismatch,
    unknownFile,
    ...(tool.writes === true ? [methodNotAllowed, problems.foreignWrite] : []),
    ...(tool.needs === undefined ? [] : [problems.serviceOff]),
    ...(tool.openWorld ? fetchProblems : []),
    ...(tool.long === true ? jobProblems : []),
    ...(tool.asksModels === true ? [keyRequired, keyOutOfCredit, modelFailed, modelTimeout, modelRefused] : []),
  ];
}

function toPascalCase(name: string): string {
  return name
    .split('_')
    .map((word) => word.charAt(0).toUpperCase() + word.slice(1))
    .join('');
}
