// The input field for a URL to fetch; its format marks it, for documents and for the test that attacks each.
import { z } from 'zod';

/** A field with a URL for the guarded fetcher. `what` names what it points to. */
export function urlField(what: string): z.ZodString {
  return z
    .string()
    .min(1)
    .max(4_096)
    .meta({ description: `${what}. A public http or https URL.`, format: 'uri' });
}
