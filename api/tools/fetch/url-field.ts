// The input field for a URL to fetch; its pattern marks it, for documents and for the test that attacks each.
import { z } from 'zod';

/**
 * What is enforced and published. The format `uri` would refuse addresses as people paste them and as queries are decoded:
 * with spaces, and with letters beyond ASCII.
 */
export const urlPattern = /^\s*[Hh][Tt][Tt][Pp][Ss]?:\/\/[^\s/]/;
const message = 'must be a complete http or https URL, such as https://example.org/page';

/** A field with a URL for the guarded fetcher. `what` names what it points to. */
export function urlField(what: string): z.ZodString {
  return z
    .string()
    .min(1)
    .max(4_096)
    .regex(urlPattern, { error: message, abort: true })
    .refine((url) => URL.canParse(url), message)
    .describe(`${what}. A public http or https URL.`);
}
