// Fields that hold more than text: in a body they are JSON already and taken as they are, in a query they are text that
// is decoded, once. Otherwise a text that looks like JSON, such as "12", could not be sent at all.
import { z } from 'zod';

type Decode = (text: string) => unknown;

/** How the text of a query becomes the value of a field, by the first half of the field's pipe. */
const decoders = new WeakMap<z.ZodType, Decode>();

/** What a query sends for a field that wants JSON, and that is none. */
class Malformed {
  readonly message: string;

  constructor(error: unknown) {
    this.message = `is not valid JSON: ${error instanceof Error ? error.message.slice(0, 200) : 'malformed'}`;
  }
}

/** Accepts what `schema` accepts, which a query writes as JSON text. Lengths are limited by the schema and the request. */
export function jsonField<Schema extends z.ZodType>(schema: Schema): z.ZodPipe<z.ZodTransform, Schema> {
  return decodedField(schema, (text) => {
    try {
      return JSON.parse(text) as unknown;
    } catch (error) {
      return new Malformed(error);
    }
  });
}

/** Accepts what `schema` accepts, which a query writes as JSON text or as a list with commas. */
export function listField<Schema extends z.ZodType>(schema: Schema): z.ZodPipe<z.ZodTransform, Schema> {
  return decodedField(schema, (text) => {
    try {
      return JSON.parse(text) as unknown;
    } catch {
      return text.split(',').map((item) => item.trim());
    }
  });
}

function decodedField<Schema extends z.ZodType>(schema: Schema, decode: Decode): z.ZodPipe<z.ZodTransform, Schema> {
  const field = z.preprocess((given, context) => {
    if (!(given instanceof Malformed)) return given;
    context.addIssue({ code: 'custom', message: given.message });
    return z.NEVER;
  }, schema) as z.ZodPipe<z.ZodTransform, Schema>;
  decoders.set(field.in, decode);
  return field;
}

/** How the text of a query becomes the value of this field; undefined for a field that is not decoded. */
export function findDecoder(field: z.ZodType): Decode | undefined {
  return field instanceof z.ZodPipe ? decoders.get(field.in as z.ZodType) : undefined;
}
