// A zod field that holds JSON: as JSON in a body, or as JSON text in a query (and from agents that write JSON into
// strings).
import { z } from 'zod';

/**
 * Takes what `schema` takes, or text that holds it. Lengths are the schema's business, and of whoever limits the
 * request.
 */
export function jsonField<Schema extends z.ZodType>(schema: Schema): z.ZodPipe<z.ZodTransform, Schema> {
  return z.preprocess((given, context) => {
    if (typeof given !== 'string') return given;
    try {
      return JSON.parse(given) as unknown;
    } catch (error) {
      context.addIssue({
        code: 'custom',
        message: `is not JSON: ${error instanceof Error ? error.message.slice(0, 200) : 'malformed'}`,
      });
      return z.NEVER;
    }
  }, schema) as z.ZodPipe<z.ZodTransform, Schema>;
}
