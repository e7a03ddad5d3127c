// Turns the text of a query into the numbers, booleans, lists and JSON that a tool's fields want.
import { z } from 'zod';
import { findDecoder } from './json-field.ts';

type Text = string | readonly string[];

/**
 * Each value as its field wants it. What cannot be turned is left as it came, so that validation names the field;
 * so is a field that is not known.
 */
export function coerceQuery(schema: z.ZodObject, query: Readonly<Record<string, Text>>): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(query).map(([name, given]) => {
      const field = Object.hasOwn(schema.shape, name) ? (schema.shape[name] as z.ZodType) : undefined;
      return [name, field === undefined ? given : coerce(bare(field), given)];
    }),
  );
}

function coerce(field: z.ZodType, given: Text): unknown {
  if (field instanceof z.ZodArray) return listOf(given).map((item) => scalar(bare(field.element as z.ZodType), item));
  if (typeof given !== 'string') return given;
  const decode = findDecoder(field);
  return decode === undefined ? scalar(field, given) : decode(given);
}

/** A repeated parameter, or one with commas; a repeated one keeps its commas. */
function listOf(given: Text): readonly string[] {
  return typeof given === 'string'
    ? given
        .split(',')
        .map((item) => item.trim())
        .filter((item) => item !== '')
    : given;
}

const words: Readonly<Record<string, boolean>> = {
  true: true,
  1: true,
  yes: true,
  on: true,
  false: false,
  0: false,
  no: false,
  off: false,
};
const decimal = /^[+-]?(\d+(\.\d*)?|\.\d+)(e[+-]?\d{1,3})?$/i;

function scalar(field: z.ZodType, text: string): unknown {
  if (field instanceof z.ZodNumber) return decimal.test(text.trim()) ? Number(text) : text;
  if (field instanceof z.ZodBoolean) {
    const word = text.trim().toLowerCase();
    return Object.hasOwn(words, word) ? words[word] : text;
  }
  return text;
}

/** The field without its wrappers: optional, default, nullable, and what is piped on. */
function bare(field: z.ZodType): z.ZodType {
  if (
    field instanceof z.ZodOptional ||
    field instanceof z.ZodDefault ||
    field instanceof z.ZodNullable ||
    field instanceof z.ZodPrefault
  )
    return bare(field.unwrap() as z.ZodType);
  if (field instanceof z.ZodPipe && !(field.in instanceof z.ZodTransform)) return bare(field.in as z.ZodType);
  return field;
}
