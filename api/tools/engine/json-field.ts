// A zod field that holds JSON: as JSON in a body, or as JSON text in a query (and from agents that write JSON into
// strings).
import { z } from 'zod';

/**
 * Accepts what `schema` accepts, or JSON text of it. Lengths are limited by the schema and by the request.
 */
export function jsonField<Schema extends z.ZodType>(schema: Schema): z.ZodPipe<z.ZodTransform, Schema> {
  return z.preprocess((given, context) => {
    if (typeof given !== 'string') return given;
    try {
      return JSON.parse(given) as unknown;
    } catch (error) {
      context.addIssue({
        code: 'custom',
        message: `is not valid JSON: ${error instanceof Error ? error.message.slice(0, 200) : 'malformed'}`,
      });
      return z.NEVER;
    }
  }, schema) as z.ZodPipe<z.ZodTransform, Schema>;
}
