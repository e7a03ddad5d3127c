// The input field of a tool that names something on the web; its format marks it as one, for documents and for the test
// that attacks each.
import { z } from 'zod';

/** A field with an address that the guarded fetch will be asked for. */
export function urlField(what: string): z.ZodString {
  return z
    .string()
    .min(1)
    .max(4_096)
    .meta({ description: `${what}: a public http or https address, like https://example.org/page`, format: 'uri' });
}
