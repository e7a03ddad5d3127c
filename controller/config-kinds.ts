// The kinds of value that the operator's variables have.
import { z } from 'zod';
import { list } from '../lib/config.ts';
import { parseDuration } from '../lib/values.ts';
import { bytesOf } from './objects/quantity.ts';
import type { Reserve } from './space/shortage.ts';

export const pairs = list.transform((items, context) => {
  const entries = items.map((item) => item.split('='));
  if (entries.some((entry) => entry.length !== 2)) context.addIssue('must be a list like key=value,key=value');
  return Object.fromEntries(entries.map(([name = '', value = '']) => [name, value]));
});

/** Names of hosts, in lower case. */
export const hosts = list.transform((names) => names.map((name) => name.toLowerCase()));

export const duration = z.string().transform((text, context) => {
  try {
    return parseDuration(text);
  } catch {
    context.addIssue('must be a duration like 90s, 20m or 2h');
    return z.NEVER;
  }
});

export const quantity = z
  .string()
  .regex(/^[0-9]+(\.[0-9]+)?(m|k|Ki|M|Mi|G|Gi|T|Ti)?$/, 'must be a quantity like 2, 500m or 4Gi');

export const bytes = quantity.transform((text) => Number(bytesOf(text)));

export const reserve = z
  .string()
  .regex(/^([0-9]+(\.[0-9]+)?(Mi|M|Gi|G|Ti|T)?|[1-9]?[0-9]%)$/, 'must be a quantity like 5Gi, or a share like 10%')
  .transform((text): Reserve =>
    text.endsWith('%') ? { share: Number(text.slice(0, -1)) / 100 } : { bytes: Number(bytesOf(text)) },
  );

export const verdict = z.enum(['reject', 'ask', 'warn']);

/** Of the header Strict-Transport-Security; two years at most. */
export const hstsSeconds = z.coerce
  .number()
  .int()
  .min(0)
  .max(63_072_000)
  .default(0)
  .describe('max-age of the header Strict-Transport-Security of apps; 0: no such header.');

export const probeToken = z
  .string()
  .min(32, 'must be a secret of at least 32 characters')
  .optional()
  .describe('Secret that probes of apps show to the activator, so that they wake none.');

export const gitReadSecret = z
  .string()
  .min(32, 'must be a secret of at least 32 characters')
  .optional()
  .describe(
    'Secret of at least 32 characters that makes the tokens for reading repositories on hosts that are reached over plain http.',
  );
