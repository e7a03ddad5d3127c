// Defines settings: environment variables that a value of the chart sets. A setting is one object. Its process reads the
// variable with it; values.yaml, the chart's schema, the `env` lines of the Deployments and the reference are generated from it.
import { z } from 'zod';
import { count, flag, list, port } from './config.ts';
import { parseDuration } from './values.ts';

interface SettingOptions {
  /** Path of the chart's value, such as `models.freeQuotaUsd`. */
  readonly value: string;
  readonly description: string;
  /** The chart's default, where it differs from that of the process on purpose. */
  readonly chartDefault?: unknown;
  /** The chart's value has no default, although the variable has one. */
  readonly requiredInChart?: boolean;
  /** What values.yaml says above the value, where the context of its section suffices or a reader needs other words. */
  readonly chartDescription?: string;
  /** Leaves the variable out of the pod if the value is empty. */
  readonly omitEmpty?: boolean;
}

/** The chart's side of a setting. */
export interface ChartValue {
  readonly path: string;
  readonly schema: z.ZodType;
  readonly format: Format;
  readonly omitEmpty: boolean;
}

const chartValues = new WeakMap<z.ZodType, ChartValue>();

/**
 * Defines a variable that a value of the chart sets. Both have one default and one description. Without a default, the
 * value is required, unless its kind is optional.
 */
export function defineSetting<Text extends z.ZodType>(
  kind: Kind<Text>,
  options: SettingOptions & { readonly default: unknown },
): z.ZodPrefault<Text>;
export function defineSetting<Text extends z.ZodType>(kind: Kind<Text>, options: SettingOptions): Text;
export function defineSetting(kind: Kind, options: SettingOptions & { readonly default?: unknown }): z.ZodType {
  const { value: path, description, chartDescription = description, omitEmpty = false } = options;
  const chartDefault = options.chartDefault ?? options.default ?? kind.unset;
  const isRequired = chartDefault === undefined || options.requiredInChart === true;
  const value = isRequired ? kind.value : kind.value.default(chartDefault);
  const schema = chartDescription === '' ? value : value.describe(chartDescription);
  const text = options.default === undefined ? kind.text : kind.text.prefault(formatValue(kind, options.default));
  const variable = text.describe(description);
  chartValues.set(variable, { path, schema, format: kind.format, omitEmpty });
  return variable;
}

/** The chart value that sets a variable; undefined if no plain value does. */
export function findChartValue(variable: z.ZodType): ChartValue | undefined {
  return chartValues.get(variable);
}

/** The variables of an environment by name, also of one that is put together from several. */
export function listVariables(environment: z.ZodType): [string, z.ZodType][] {
  const { def } = environment as unknown as {
    def: { left?: z.ZodType; right?: z.ZodType; shape?: Readonly<Record<string, z.ZodType>> };
  };
  if (def.left !== undefined && def.right !== undefined)
    return [...listVariables(def.left), ...listVariables(def.right)];
  return Object.entries(def.shape ?? {});
}

/** How a value is written into its variable; `text` is a string or a boolean. The chart's templates write the same. */
export type Format = 'text' | 'number' | 'list' | 'labels' | 'json';

/** The text of a value in its variable. */
export function formatValue({ format }: { readonly format: Format }, value: unknown): string {
  if (format === 'list') return z.array(z.string()).parse(value).join(',');
  if (format === 'json') return JSON.stringify(value);
  if (format !== 'labels') return String(value);
  return Object.entries(z.record(z.string(), z.string()).parse(value))
    .map(([key, label]) => `${key}=${label}`)
    .join(',');
}

/** What values of the chart may be. */
export const valueTypes = {
  quantity: z.string().regex(/^[0-9]+(\.[0-9]+)?(m|k|M|G|T|Ki|Mi|Gi|Ti)?$/),
  /** An amount of disk space, or a share of the disk. */
  reserve: z.string().regex(/^([0-9]+(\.[0-9]+)?(Mi|M|Gi|G|Ti|T)?|[1-9]?[0-9]%)$/),
  duration: z
    .string()
    .regex(/^([0-9]+h)?([0-9]+m)?([0-9]+s)?$/)
    .min(2)
    .describe('Duration, such as 90s, 20m or 2h.'),
  cidr: z
    .string()
    .regex(/^[0-9a-fA-F:.]+\/[0-9]{1,3}$/)
    .describe('CIDR, such as 10.0.0.0/8.'),
  labels: z.record(z.string(), z.string()).describe('Labels that select a namespace.'),
  port: z.int().min(1).max(65_535),
  name: z
    .string()
    .regex(/^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$/)
    .max(253),
  host: z
    .string()
    .regex(/^[a-z0-9]([a-z0-9.-]*[a-z0-9])?(:[0-9]{1,5})?$/)
    .describe('host or host:port, in lower case.'),
  domain: z
    .string()
    .regex(/^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$/)
    .max(200),
  url: z.string().regex(/^https?:\/\//),
  /** Amount of money in USD. */
  usd: z.string().regex(/^[0-9]{1,7}(\.[0-9]{1,12})?$/),
} as const;

export function allowEmpty<Schema extends z.ZodType>(schema: Schema): z.ZodUnion<readonly [Schema, z.ZodLiteral<''>]> {
  return z.union([schema, z.literal('')]);
}

/** A kind of setting: how a process reads the text of the variable, and what the chart's value may be. */
export interface Kind<Text extends z.ZodType = z.ZodType> {
  readonly text: Text;
  readonly value: z.ZodType;
  readonly format: Format;
  /** The chart's default, where the process has none. */
  readonly unset?: unknown;
}

interface Bounds {
  readonly min: number;
  readonly max?: number;
  /** Narrower bounds for the operator of an installation; tests and benchmarks go beyond them. */
  readonly chart?: { readonly min?: number; readonly max?: number };
}

const duration = z.string().transform((text, context) => {
  try {
    return parseDuration(text);
  } catch {
    context.addIssue('must be a duration like 90s, 20m or 2h');
    return z.NEVER;
  }
});

const pairs = list.transform((items, context) => {
  const entries = items.map((item) => item.split('='));
  if (entries.some((entry) => entry.length !== 2)) context.addIssue('must be a list like key=value,key=value');
  return Object.fromEntries(entries.map(([name = '', value = '']) => [name, value]));
});

interface Limitable {
  min(value: number): this;
  max(value: number): this;
}

function limitNumber<Schema extends Limitable>(schema: Schema, min: number, max: number | undefined): Schema {
  return max === undefined ? schema.min(min) : schema.min(min).max(max);
}

export const kinds = {
  text: <Text extends z.ZodType>(value: z.ZodType, text: Text): Kind<Text> => ({ text, value, format: 'text' }),
  flag: { text: flag, value: z.boolean(), format: 'text' },
  choice: <const Choice extends string>(
    choices: readonly Choice[],
    error?: string,
  ): Kind<z.ZodEnum<{ [Key in Choice]: Key }>> => ({
    text: z.enum(choices, error),
    value: z.enum(choices),
    format: 'text',
  }),
  number: ({ min, max, chart }: Bounds): Kind<z.ZodCoercedNumber> => ({
    text: limitNumber(min === 1 ? count : z.coerce.number().int(), min, max),
    value: limitNumber(z.int(), chart?.min ?? min, chart?.max ?? max),
    format: 'number',
  }),
  port: { text: port, value: valueTypes.port, format: 'number' },
  duration: { text: duration, value: valueTypes.duration, format: 'text' },
  quantity: {
    text: z.string().regex(/^[0-9]+(\.[0-9]+)?(m|k|Ki|M|Mi|G|Gi|T|Ti)?$/, 'must be a quantity like 2, 500m or 4Gi'),
    value: valueTypes.quantity,
    format: 'text',
  },
  list: <Text extends z.ZodType>(item: z.ZodType, text: Text): Kind<Text> => ({
    text,
    value: z.array(item),
    format: 'list',
  }),
  /** key=value,key=value */
  labels: { text: pairs, value: valueTypes.labels, format: 'labels' },
  /** Absent where it is not set; the chart's value is then empty. */
  optional: <Text extends z.ZodType>(kind: Kind<Text>): Kind<z.ZodOptional<Text>> => ({
    ...kind,
    text: kind.text.optional(),
    value: allowEmpty(kind.value),
    unset: '',
  }),
} as const;
