// A push notification config as a caller sends it: read, checked, and refused with what to change.
import { randomUUID } from 'node:crypto';
import { RequestMalformedError } from '@a2a-js/sdk/errors';
import type { TaskPushNotificationConfig } from '@a2a-js/sdk';
import { z } from 'zod';
import type { Fetcher } from '../../../tools/index.ts';

/** Where and how to notify somebody of the end of a task. */
export interface PushConfig {
  readonly id: string;
  readonly url: string;
  readonly token: string | undefined;
  readonly authentication: { readonly scheme: string; readonly credentials: string } | undefined;
}

const maxSecret = 4_096;
/** What a header may hold, so that no secret adds a header of its own. */
const headerText = z
  .string()
  .max(maxSecret, `must be at most ${maxSecret} characters`)
  .regex(/^[\u0021-\u007e](?:[\u0020-\u007e]*[\u0021-\u007e])?$/, 'must be printable ASCII without spaces around it');

const fields = z.object({
  id: z.string().regex(/^[A-Za-z0-9._-]{1,128}$/, 'must be 1 to 128 letters, digits, ".", "_" or "-"'),
  url: z.string().min(1, 'is missing').max(4_096, 'must be at most 4096 characters'),
  token: headerText.optional(),
  authentication: z
    .object({
      scheme: z
        .string()
        .regex(/^[A-Za-z0-9!#$%&'*+.^_`|~-]{1,64}$/, 'must be the name of an HTTP scheme, such as Bearer'),
      credentials: headerText,
    })
    .optional(),
});

/** @throws RequestMalformedError */
export function readPushConfig(given: TaskPushNotificationConfig): PushConfig {
  const { id, url, token, authentication } = given;
  const read = fields.safeParse({
    id: id === '' ? randomUUID() : id,
    url,
    token: token === '' ? undefined : token,
    // A scheme alone, as clients of 0.3 may send it, authenticates nothing.
    authentication: (authentication?.credentials ?? '') === '' ? undefined : authentication,
  });
  if (read.success) return { token: undefined, authentication: undefined, ...read.data };
  const faults = read.error.issues.map(({ path, message }) => `${path.join('.')} ${message}`);
  throw new RequestMalformedError(`The push notification config is invalid: ${faults.join('; ')}.`);
}

/** Refuses an address that would not be notified. @throws Problem (url-refused, fetch-failed) */
export async function checkPushUrl(fetcher: Fetcher, url: string, signal: AbortSignal): Promise<void> {
  await fetcher.check({ url, httpsOnly: true, signal });
}
