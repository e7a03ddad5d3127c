// Defines the kinds of value that HostedApp fields are made of. Each validation rule is written once for zod, which checks
// it in our code, and for CEL, which checks it in the API server with the same message.
import { z } from 'zod';
import { parseDuration } from '../lib/values.ts';

/** A rule about one field. `message` says what to write instead; the API server shows it next to the rejected value. */
export interface Rule<Value> {
  /** CEL over `self`, true if the value is valid. Must not fail to evaluate on a value that the schema admits. */
  readonly cel: string;
  /** The same in TypeScript. */
  readonly isValid: (value: Value) => boolean;
  readonly message: string;
}

/** One entry of `x-kubernetes-validations`. */
export interface Validation {
  readonly rule: string;
  readonly message: string;
}

const validationsKey = 'x-kubernetes-validations';

function readValidations(schema: z.ZodType): readonly Validation[] {
  const validations = schema.meta()?.[validationsKey];
  return Array.isArray(validations) ? (validations as Validation[]) : [];
}

function addValidations<Schema extends z.ZodType>(schema: Schema, added: readonly Validation[]): Schema {
  return schema.meta({ [validationsKey]: [...readValidations(schema), ...added] });
}

/** Adds rules to a schema, for both zod and the API server. */
export function addRules<Schema extends z.ZodType>(
  schema: Schema,
  ...rules: readonly Rule<z.output<Schema>>[]
): Schema {
  const refined = rules.reduce<Schema>(
    (current, { isValid, message }) => current.refine(isValid, { error: message }),
    schema,
  );
  return addValidations(
    refined,
    rules.map(({ cel, message }) => ({ rule: cel, message })),
  );
}

/** Rejects a change of the field once it is set. Only the API server knows the old value, so zod does not check it. */
export function makeImmutable<Schema extends z.ZodType>(schema: Schema, message: string): Schema {
  return addValidations(schema, [{ rule: 'self == oldSelf', message }]);
}

/** A list with one key field: server-side apply merges items by it, and no two items have the same key. */
export function listBy<Item extends z.ZodType<Record<string, unknown>>>(
  items: z.ZodArray<Item>,
  key: string,
): z.ZodArray<Item> {
  const unique = items.refine((list) => new Set(list.map((item) => item[key])).size === list.length, {
    error: `two items have the same ${key}; keep one of them`,
  });
  return unique.meta({ 'x-kubernetes-list-type': 'map', 'x-kubernetes-list-map-keys': [key] });
}

/** Writes a text as a CEL string literal. */
export function toCelString(text: string): string {
  return `'${text.replaceAll('\\', '\\\\').replaceAll("'", "\\'")}'`;
}

/**
 * The text matches `pattern`, in the syntax that JavaScript and RE2 share: no lookaround, back reference, `.`, `\s` or
 * `\w`.
 */
export function createPatternRule(pattern: string, message: string): Rule<string> {
  const expression = new RegExp(pattern, 'u');
  return { cel: `self.matches(${toCelString(pattern)})`, isValid: (text) => expression.test(text), message };
}

/** The rule of a DNS label that starts with a letter. `subject` starts its message, such as "the name of a volume". */
export function createNameRule(subject: string): Rule<string> {
  return createPatternRule(
    '^[a-z]([-a-z0-9]*[a-z0-9])?$',
    `${subject} has lower-case letters, digits and inner hyphens, and starts with a letter`,
  );
}

const suffixes: Readonly<Record<string, number>> = {
  '': 1,
  m: 1e-3,
  k: 1e3,
  M: 1e6,
  G: 1e9,
  T: 1e12,
  Ki: 2 ** 10,
  Mi: 2 ** 20,
  Gi: 2 ** 30,
  Ti: 2 ** 40,
};
const quantityPattern = /^([0-9]{1,15}(?:\.[0-9]{1,3})?)(m|k|M|G|T|Ki|Mi|Gi|Ti)?$/;

/** Parses a Kubernetes quantity into cores or bytes; undefined for any other text. */
export function parseQuantityValue(text: string): number | undefined {
  const match = quantityPattern.exec(text);
  return match === null ? undefined : Number(match[1]) * (suffixes[match[2] ?? ''] ?? Number.NaN);
}

/** A Kubernetes quantity between two others, both included. */
export function quantity(subject: string, least: string, maximum: string): z.ZodString {
  const [low, high] = [parseQuantityValue(least) ?? Number.NaN, parseQuantityValue(maximum) ?? Number.NaN];
  const form = toCelString('^[0-9]{1,15}([.][0-9]{1,3})?(m|k|M|G|T|Ki|Mi|Gi|Ti)?$');
  return addRules(z.string().max(24), {
    cel: `self.matches(${form}) && quantity(self).compareTo(quantity(${toCelString(least)})) >= 0 && quantity(self).compareTo(quantity(${toCelString(maximum)})) <= 0`,
    isValid: (text) => {
      const value = parseQuantityValue(text);
      return value !== undefined && value >= low && value <= high;
    },
    message: `${subject} must be a quantity from ${least} to ${maximum}, like ${least}; write a plain number or one with m, k, M, G, T, Ki, Mi, Gi or Ti`,
  });
}

const durationPattern = /^([0-9]{1,5}h)?([0-9]{1,5}m)?([0-9]{1,5}s)?$/;

/** A duration like 90s, 5m or 1h30m between two others, both included. Absent `maximum`: no upper bound. */
export function duration(subject: string, least: string, maximum: string): z.ZodString {
  const [low, high] = [parseDuration(least), parseDuration(maximum)];
  return addRules(z.string().max(20), {
    cel: `self.size() > 0 && self.matches(${toCelString(durationPattern.source)}) && duration(self) >= duration(${toCelString(least)}) && duration(self) <= duration(${toCelString(maximum)})`,
    isValid: (text) =>
      text !== '' && durationPattern.test(text) && parseDuration(text) >= low && parseDuration(text) <= high,
    message: `${subject} must be a duration from ${least} to ${maximum}, written like 90s, 5m or 1h30m`,
  });
}

/** A relative path that stays inside the repository. */
export function relativePath(subject: string): z.ZodString {
  return addRules(
    z.string().min(1).max(200),
    createPatternRule(
      String.raw`^[^\x00-\x1f\x7f\\/][^\x00-\x1f\x7f\\]*$`,
      `${subject} must be relative to the repository: no leading /, no backslash, no control character`,
    ),
    createNoParentSegmentRule(subject),
  );
}

/** No `..` between slashes. */
export function createNoParentSegmentRule(subject: string): Rule<string> {
  return {
    cel: `!self.split('/').exists(part, part == '..')`,
    isValid: (text) => !text.split('/').includes('..'),
    message: `${subject} must not contain ".."; use a path without parent folders`,
  };
}

/** Name of a stage of a Dockerfile. */
export const stageName = addRules(
  z.string().max(100),
  createPatternRule(
    '^[A-Za-z][A-Za-z0-9_.-]*$',
    'target must be the name of a stage: letters, digits, "_", "." and "-"',
  ),
);

/** Name of an environment variable. */
export const environmentName = addRules(
  z.string().max(128),
  createPatternRule(
    '^[A-Za-z_][A-Za-z0-9_]*$',
    'the name of a variable must contain only letters, digits and _, and must not start with a digit',
  ),
);

/** Name of a variable of the running app. PORT is not allowed, since the platform sets it. */
export const appVariableName = addRules(environmentName, {
  cel: `self != 'PORT'`,
  isValid: (name) => name !== 'PORT',
  message: 'PORT is set by the platform; set run.port instead',
});

export const timestamp = z.iso.datetime().describe('RFC 3339 time, UTC.');

/** How a variable of run.env requests a secret that the platform generates, as authors write it in moorage.yaml. */
export const askedSecret = '${{secret}}';

/** Matches such a request, which must be the whole value of the variable. */
export const generatedSecret = /^\$\{\{ {0,3}secret {0,3}\}\}$/;

/** Bounds of an idle time that is set. */
export const idleBounds = { least: '10s', maximum: '168h' } as const;

function isIdleTime(text: string): boolean {
  if (text === 'auto' || text === 'never') return true;
  if (text === '' || !durationPattern.test(text)) return false;
  const milliseconds = parseDuration(text);
  return milliseconds >= parseDuration(idleBounds.least) && milliseconds <= parseDuration(idleBounds.maximum);
}

export const idleAfter = addRules(z.string().max(20), {
  cel: `self in ['auto', 'never'] || self.size() > 0 && self.matches(${toCelString(durationPattern.source)}) && duration(self) >= duration('${idleBounds.least}') && duration(self) <= duration('${idleBounds.maximum}')`,
  isValid: isIdleTime,
  message: `idleAfter must be auto, never, or a duration from ${idleBounds.least} to ${idleBounds.maximum}, written like 90s, 15m or 2h`,
});

export const idleDepth = z.enum(['sleep', 'nap']);

// Variables, Secrets and volumes.

const value = z.string().max(32_768).describe('Value, used literally; references such as $(NAME) are not expanded.');

/** A variable with its value. */
export const variable = z.strictObject({
  name: environmentName.describe('Name of the variable.'),
  value,
});

/** A variable of the running app. */
export const appVariable = z.strictObject({
  name: appVariableName.describe('Name of the variable. PORT is set by the platform.'),
  value,
});

/** A variable of the running app whose value comes from a Secret. */
export const secretReference = z.strictObject({
  name: appVariableName.describe('Name of the environment variable in the app.'),
  secret: addRules(
    z.string().max(253),
    createPatternRule(
      '^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$',
      'secret must be the name of a Secret: lower-case letters, digits, "-" and "."',
    ),
  ).describe('Name of a Secret in the namespace of the app.'),
  key: addRules(
    z.string().max(253),
    createPatternRule('^[-._A-Za-z0-9]+$', 'key must be a key of that Secret: letters, digits, "-", "_" and "."'),
  ).describe('Key in that Secret.'),
});

/** Where a volume is mounted. */
const mountPath = addRules(
  z.string().max(200),
  createPatternRule(
    String.raw`^(/[^\x00-\x1f\x7f:\\/]+)+$`,
    'path must be absolute and name a folder below /, like /data, without ":" and without a slash at its end',
  ),
  createNoParentSegmentRule('path'),
  {
    cel: `!self.matches('^/(proc|sys|dev|etc)(/.*)?$')`,
    isValid: (path) => !/^\/(proc|sys|dev|etc)(\/|$)/.test(path),
    message:
      'path must not be in /proc, /sys, /dev or /etc, which are reserved for the platform; use a folder like /data',
  },
);

/** A persistent volume and where it is mounted. */
export const volume = z.strictObject({
  name: addRules(z.string().max(30), createNameRule('the name of a volume')).describe(
    'Name of the volume, a DNS label of at most 30 characters.',
  ),
  path: mountPath.describe('Absolute path at which the volume is mounted; not in /proc, /sys, /dev or /etc.'),
  size: quantity('size', '1Mi', '1Ti')
    .default('1Gi')
    .describe('Size of the volume. It can be increased later if the storage class allows it, but never decreased.'),
});

/** A TCP port. */
export const portNumber = z.int().min(1).max(65_535);

/** How an MCP server is reached, by the names of its specification. */
export const mcpTransports = ['stdio', 'sse', 'streamable-http'] as const;

const mcpCommand = z.array(z.string().min(1).max(4096)).max(64);
const mcpCommandText =
  'Command and arguments that start the MCP server, such as [node, dist/index.js, stdio]. Not run in a shell. Default: what its files show.';

/** How an MCP server starts. */
export const mcp = z.strictObject({
  transport: z
    .enum([...mcpTransports, 'none'])
    .optional()
    .describe(
      'What the start command of an MCP server speaks: stdio and sse are bridged to streamable HTTP at /mcp. none: the repository is not an MCP server. Default: what its files show.',
    ),
  command: mcpCommand.default([]).describe(mcpCommandText),
});
/** The same without defaults, where only what someone has set counts. */
export const declaredMcp = z.strictObject({
  transport: mcp.shape.transport,
  command: mcpCommand.optional().describe(mcpCommandText),
});

/** A path that is probed. */
export const healthPath = addRules(
  z.string().max(200),
  createPatternRule(String.raw`^/[\x21-\x7e]*$`, 'healthPath must start with / and have no space, like /healthz'),
);
