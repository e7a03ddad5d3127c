// Fields of a schema as lines of Markdown for language models: name, type, whether it is required, what it means.
import { z } from 'zod';

interface FieldSchema {
  readonly type?: string | readonly string[];
  readonly enum?: readonly unknown[];
  readonly const?: unknown;
  readonly anyOf?: readonly FieldSchema[];
  readonly items?: FieldSchema;
  readonly default?: unknown;
  readonly description?: string;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly minItems?: number;
  readonly maxItems?: number;
  readonly properties?: Readonly<Record<string, FieldSchema>>;
  readonly required?: readonly string[];
}

/** A line for each field of an object; none for any other schema. */
export function fieldLines(schema: z.ZodType, io: 'input' | 'output'): string[] {
  const { properties = {}, required = [] } = z.toJSONSchema(schema, { io }) as FieldSchema;
  return Object.entries(properties).map(([name, field]) => {
    const kind = [
      typeText(field),
      ...(io === 'input' ? [required.includes(name) ? '**required**' : 'optional'] : []),
      ...(io === 'output' && !required.includes(name) ? ['may be absent'] : []),
      ...(field.default === undefined ? [] : [`default ${JSON.stringify(field.default)}`]),
    ].join(', ');
    const about = oneLine(field.description ?? '');
    return `- \`${name}\` (${kind})${about === '' ? '' : `: ${about}`}`;
  });
}

/** Names of the fields without which a call is refused, in their order. */
export function requiredFields(schema: z.ZodType): readonly string[] {
  return (z.toJSONSchema(schema, { io: 'input' }) as FieldSchema).required ?? [];
}

export function oneLine(text: string): string {
  return text.replaceAll(/\s+/g, ' ').trim();
}

function typeText(field: FieldSchema): string {
  if (field.const !== undefined) return JSON.stringify(field.const);
  if (field.enum !== undefined) return `one of ${field.enum.map((value) => JSON.stringify(value)).join(', ')}`;
  if (field.anyOf !== undefined) return field.anyOf.map(typeText).join(' or ');
  if (field.type === 'array')
    return `list of ${field.items === undefined ? 'values' : typeText(field.items)}${bounds(field.minItems, field.maxItems, ' entries')}`;
  const type = [field.type ?? 'any JSON'].flat().join(' or ');
  return `${type}${bounds(field.minLength, field.maxLength, ' characters')}${bounds(field.minimum, field.maximum, '')}`;
}

function bounds(from: number | undefined, to: number | undefined, unit: string): string {
  const [low, high] = [
    from === Number.MIN_SAFE_INTEGER ? undefined : from,
    to === Number.MAX_SAFE_INTEGER ? undefined : to,
  ];
  if (low !== undefined && high !== undefined) return ` of ${low} to ${high}${unit}`;
  if (high !== undefined) return ` of at most ${high}${unit}`;
  return low === undefined ? '' : ` of at least ${low}${unit}`;
}
