// Lists the tools for MCP: arguments, result shape, and annotations for clients. A model reads the whole list into its
// context. So what all tools share is stated once, in the instructions, and field aliases are left to the documents.
import type { Tool as ListedTool } from '@modelcontextprotocol/server';
import { z } from 'zod';
import { formatMoney, parseMoney } from '../../billing/index.ts';
import { getTimeLimitMs, type Tool, ToolReader, type ToolRegistry, defaultLimitMs } from '../../tools/index.ts';

/** Tools that can be called here, and tools that are off. */
export interface ToolListing {
  readonly on: readonly ListedTool[];
  readonly off: readonly ListedTool[];
}

/** States what every call and result has in common. Part of the instructions. */
export const resultText =
  'Every tool takes `s`, a session name of your choice (1 to 64 letters, digits, ".", "_" or "-"), which groups your calls and separates spaces of memory (without a key, memory takes only one that is hard to guess, such as a UUID); `raw` embeds the file that a tool creates, whatever its size. ' +
  'A result has `result` with the fields in the description of its tool ("?" marks those that may be absent; GET /t/<tool> in /openapi.json describes them), `cost_usd`, `charged_usd`, `cost_source`, `latency_ms` and `request_id`; `artifact` with `url`, `media_type`, `file_name` and `bytes` if a file was created; `quota` and `hint` when the free quota runs low; a failed call has `problem` instead, whose `detail` says what went wrong and whose `errors` list each invalid argument with a fix. A failed call is not charged, apart from model calls already made.';

export function listTools(toolRegistry: ToolRegistry): ToolListing {
  const { on = [], off = [] } = Object.groupBy(toolRegistry.tools, (tool) =>
    toolRegistry.explainOff(tool) === undefined ? 'on' : 'off',
  );
  return {
    on: on.map((tool) => {
      const { description, ...rest } = toListedTool(tool);
      const shape = describeShape(z.toJSONSchema(tool.output, { io: 'output' }));
      return { ...rest, description: `${description} Result: ${shape}.` };
    }),
    off: off.map((tool) => {
      const { description, ...rest } = toListedTool(tool);
      return { ...rest, description: `${description} Not available here. ${toolRegistry.summarizeOff(tool) ?? ''}` };
    }),
  };
}

function toListedTool(tool: Tool): ListedTool & { readonly description: string } {
  return {
    name: tool.name,
    title: tool.title,
    description: `${tool.description} ${describeTerms(tool)}`,
    inputSchema: buildInputSchema(tool),
    annotations: {
      readOnlyHint: tool.writes !== true,
      destructiveHint: tool.writes === true,
      idempotentHint: tool.writes !== true,
      openWorldHint: tool.openWorld,
    },
  };
}

/** Describes price and duration, unless the instructions state them for all tools. */
function describeTerms(tool: Tool): string {
  const price = parseMoney(tool.price);
  const models = tool.asksModels === true ? ' plus the billed cost of its model calls' : '';
  const limitMs = getTimeLimitMs(tool);
  return `Price: ${price === 0n ? 'free' : `${formatMoney(price)} USD`}${models}.${limitMs > defaultLimitMs ? ` Time limit: ${limitMs / 1000} s.` : ''}`;
}

/** Short descriptions of the options that every tool has over MCP; the instructions explain them. */
const options: Readonly<Record<string, Field>> = {
  s: { type: 'string', description: 'Session name.' },
  raw: { type: 'boolean', description: 'Embed the file.' },
  wait: { type: 'integer', minimum: 0, maximum: 60, description: 'Seconds to wait for the result.' },
  job: { type: 'string', description: 'Id of a job: returns its status or result.' },
};

function buildInputSchema(tool: Tool): ObjectSchema {
  const { description: _, ...schema } = toObjectSchema(new ToolReader(tool).shown);
  const fields = Object.entries(schema.properties ?? {})
    .filter(([name]) => name !== 'raw' || tool.artifacts !== undefined)
    .map(([name, field]) => [name, name in tool.input.shape ? field : (options[name] ?? field)] as const);
  return { ...schema, properties: Object.fromEntries(fields) };
}

type ObjectSchema = ListedTool['inputSchema'];
type Field = NonNullable<ObjectSchema['properties']>[string];

/** Maximum text length that only the request size limits, not the schema. */
const requestCharacters = 1_000_000;

function toObjectSchema(schema: z.ZodObject): ObjectSchema {
  const made = z.toJSONSchema(schema, {
    io: 'input',
    target: 'draft-2020-12',
    override: ({ jsonSchema }) => {
      // Remove obvious constraints and those in the description: any safe integer, non-empty text, text up to the
      // request size limit, any key, the default, the range, the form of a text and its length.
      if (jsonSchema.minimum === Number.MIN_SAFE_INTEGER) delete jsonSchema.minimum;
      if (jsonSchema.maximum === Number.MAX_SAFE_INTEGER) delete jsonSchema.maximum;
      if (jsonSchema.minLength === 1) delete jsonSchema.minLength;
      if ((jsonSchema.maxLength ?? 0) >= requestCharacters) delete jsonSchema.maxLength;
      if (/default/i.test(jsonSchema.description ?? '')) delete jsonSchema.default;
      if (new RegExp(`\\b${jsonSchema.minimum} to ${jsonSchema.maximum}\\b`).test(jsonSchema.description ?? '')) {
        delete jsonSchema.minimum;
        delete jsonSchema.maximum;
      }
      if (jsonSchema.pattern !== undefined || isLengthDescribed(jsonSchema)) delete jsonSchema.maxLength;
      delete jsonSchema.pattern;
      delete jsonSchema.propertyNames;
    },
  });
  delete made.$schema;
  return made as ObjectSchema;
}

/** Whether the description states the maximum length, as in "up to 20,000 characters". */
function isLengthDescribed({ maxLength, description = '' }: z.core.JSONSchema.BaseSchema): boolean {
  return new RegExp(`\\b${maxLength} characters`).test(description.replaceAll(',', ''));
}

type ResultSchema = z.core.JSONSchema._JSONSchema;

/**
 * Formats a result's field names, like `{query, results: [{title, url?}]}`. Complete output schemas would take a third
 * of the list, and few clients show them to a model.
 */
function describeShape(schema: ResultSchema): string {
  if (typeof schema === 'boolean') return '';
  const forms = (schema.anyOf ?? schema.oneOf ?? []).map(describeShape).filter((shape) => shape !== '');
  if (forms.length > 0) return [...new Set(forms)].join(' | ');
  if (schema.type === 'array') return `[${Array.isArray(schema.items) ? '' : describeShape(schema.items ?? {})}]`;
  const fields = Object.entries(schema.properties ?? {}).map(([name, field]) => {
    const shape = describeShape(field);
    return `${name}${schema.required?.includes(name) === true ? '' : '?'}${shape === '' ? '' : `: ${shape}`}`;
  });
  return fields.length === 0 ? '' : `{${fields.join(', ')}}`;
}
