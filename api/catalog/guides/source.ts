// The format of the guides in manifests/guides, and their steps as shell commands and MCP requests.
import { z } from 'zod';

export const guideSlugs = [
  'compare-llm-cost-for-a-prompt',
  'reliable-json-models-for-agents',
  'translate-paper-pdf-without-breaking-equations',
  'best-model-for-research-agent',
  'generate-downloadable-pptx-with-mcp',
  'free-llm-api-for-agents-no-signup',
  'do-expensive-llms-perform-better',
  'run-open-source-ai-apps-without-install',
  'best-llm-for-academic-polishing',
  'toolbox-for-your-agent-zero-install',
  'transcribe-audio-url-via-mcp',
] as const;

export type GuideSlug = (typeof guideSlugs)[number];

const text = z
  .string()
  .min(1)
  .regex(/^\S(?:[\s\S]*\S)?$/, 'must not begin or end with blank space');
const values = z.record(z.string(), z.unknown());

/** A value of a call that only the answer before, or the caller, knows: written `$NAME`. */
export const variableName = /^[A-Z][A-Z_]{0,30}$/;

const address = z
  .string()
  .regex(/^(?:\/[^?#\s]*|\$[A-Z][A-Z_]{0,30})$/, 'must be a path without a query, or a variable such as $FILE_URL');

const get = z.strictObject({
  get: address,
  query: z.record(z.string(), z.union([z.string(), z.number(), z.boolean()])).optional(),
  save: z
    .string()
    .regex(/^[a-z0-9.-]{1,60}$/, 'must be a file name')
    .optional()
    .describe('File that the bytes of the answer are written to.'),
});
const post = z.strictObject({
  post: address,
  json: values,
  key: z.boolean().optional().describe('Whether it is sent with the key of the caller.'),
});
const mcp = z.strictObject({ mcp: text.describe('Name of the tool.'), arguments: values });

const call = z.union([get, post, mcp]);
export type Call = z.output<typeof call>;

const step = z.strictObject({
  say: text,
  say_zh: text,
  call,
  uses: z
    .record(z.string().regex(variableName, 'must be a name in capitals'), text)
    .optional()
    .describe('Variables of the call, each with where an answer before has it, such as job.id.'),
});
export type SourceStep = z.output<typeof step>;

const claimFields = {
  /** The claim in a sentence without a full stop, to be followed by a colon and the figures. */
  says: text,
  says_zh: text,
};

/** What evidence is asked for. Each kind is a condition that a program decides; see claims.ts. */
const claim = z.discriminatedUnion('kind', [
  z.strictObject({
    kind: z.literal('best-value'),
    ...claimFields,
    model: z.string().optional().describe('The model that is said to be it; without it, whichever was measured to be.'),
  }),
  z.strictObject({
    kind: z.literal('cheaper-as-good'),
    ...claimFields,
    margin: z
      .number()
      .min(0)
      .max(0.5)
      .default(0.1)
      .describe('How much lower a pass rate may be and still count as good.'),
  }),
  z.strictObject({
    kind: z.literal('reliable'),
    ...claimFields,
    at_least: z.number().min(0).max(1).describe('Pass rate that the lower end of the interval has to reach.'),
  }),
]);
export type Claim = z.output<typeof claim>;

export const sourceGuide = z
  .strictObject({
    slug: z.enum(guideSlugs),
    updated: z.iso.datetime('must be a UTC time such as 2026-01-31T00:00:00Z').describe('When the text last changed.'),
    question: text,
    title_zh: text,
    answer: text,
    answer_zh: text,
    tool: z.strictObject({ name: text, arguments_example: values }),
    steps: z.array(step).min(1),
    evidence: z
      .array(z.string().regex(/^[a-z][a-z0-9-]{0,62}$/, 'must be the slug of an app'))
      .describe('Apps whose benchmark applies.'),
    claims: z.array(claim).default([]),
  })
  .refine(({ claims, evidence }) => claims.length === 0 || evidence.length > 0, {
    path: ['claims'],
    error: 'needs evidence: name the apps whose benchmark decides them',
  });
export type SourceGuide = z.output<typeof sourceGuide>;

/** A step in both languages, and what it runs. */
export interface Step {
  readonly say: string;
  readonly say_zh: string;
  /** A shell command, or the parameters of an MCP request; the same in every language. */
  readonly command: string;
}

export function toStep({ say, say_zh, call }: SourceStep, baseUrl: string): Step {
  return { say, say_zh, command: formatCommand(call, baseUrl) };
}

/** The line of a record. */
export function formatStep({ say, command }: Step): string {
  return `${say}: ${command}`;
}

/** How the call of an MCP tool begins; its parameters follow as JSON. */
export const formatMcpPrefix = (baseUrl: string): string => `MCP tools/call at ${baseUrl}/mcp with `;

function formatCommand(call: Call, baseUrl: string): string {
  if ('mcp' in call)
    return `${formatMcpPrefix(baseUrl)}${JSON.stringify({ name: call.mcp, arguments: call.arguments })}`;
  if ('post' in call) {
    // In double quotes, the shell fills the key in.
    const key = call.key === true ? ' -H "Authorization: Bearer $ROUTER_KEY"' : '';
    return `curl ${formatAddress({ get: call.post }, baseUrl)}${key} -H 'content-type: application/json' -d ${quote(JSON.stringify(call.json))}`;
  }
  const save = call.save === undefined ? '' : ` -o ${call.save}`;
  return `curl${save} ${formatAddress(call, baseUrl)}`;
}

const variable = /^\$[A-Z][A-Z_]{0,30}$/;

/** Whether a value is filled in by who runs the step. */
export function isVariable(value: unknown): boolean {
  return typeof value === 'string' && variable.test(value);
}

function formatAddress({ get, query = {} }: Extract<Call, { get: string }>, baseUrl: string): string {
  if (isVariable(get)) return `"${get}"`;
  const pairs = Object.entries(query).map(
    ([name, value]) => `${name}=${isVariable(value) ? String(value) : encodeValue(String(value))}`,
  );
  const url = `${baseUrl}${get}${pairs.length === 0 ? '' : `?${pairs.join('&')}`}`;
  return Object.values(query).some(isVariable) ? `"${url}"` : quote(url);
}

/** Nothing that a shell reads in double quotes is left as it is. */
function encodeValue(text: string): string {
  return encodeURIComponent(text).replaceAll('!', '%21').replaceAll('%20', '+');
}

function quote(text: string): string {
  return `'${text.replaceAll("'", String.raw`'\''`)}'`;
}
