// Reads configuration from the environment with a zod schema, and reports everything that is wrong in one error.
import { z } from 'zod';

/** Parses the environment. @throws Error that names each variable that is wrong, what it must be, and what it was. */
export function readConfig<Schema extends z.ZodType>(
  schema: Schema,
  environment: NodeJS.ProcessEnv = process.env,
): z.output<Schema> {
  const present = Object.fromEntries(
    Object.entries(environment).filter(([, value]) => value !== undefined && value !== ''),
  );
  const parsed = schema.safeParse(present);
  if (parsed.success) return parsed.data;
  const lines = parsed.error.issues.map((issue) => `  ${issue.path.join('.')}: ${issue.message}`);
  throw new Error(`invalid configuration in the environment:\n${lines.join('\n')}`);
}

/** A comma separated list. */
export const list = z.string().transform((text) =>
  text
    .split(',')
    .map((item) => item.trim())
    .filter((item) => item !== ''),
);

/** `true` or `false`. */
export const flag = z.enum(['true', 'false']).transform((text) => text === 'true');

/** A whole number above 0. */
export const count = z.coerce.number().int().positive();

export const port = count.max(65_535, 'must be a port, 1 to 65535');

/** The port of /healthz, /readyz and /metrics; 0: any free port. */
export const internalPort = z.coerce
  .number()
  .int()
  .min(0)
  .max(65_535)
  .default(9090)
  .describe('Port of /healthz, /readyz and /metrics.');

export const secret = z.string().min(32, 'must be a secret of at least 32 characters');
