// The installation's account at the registry, out of a dockerconfigjson.
import { z } from 'zod';

const entry = z.object({
  auth: z.string().optional(),
  username: z.string().optional(),
  password: z.string().optional(),
});
const dockerConfig = z.object({ auths: z.record(z.string(), entry).default({}) });

/**
 * `user:password` in base64 for a registry; undefined when the file has none for it, as for a registry that asks for
 * none.
 *
 * @throws Error when the text is no dockerconfigjson.
 */
export function credentialsFor(host: string, text: string): string | undefined {
  const { auths } = dockerConfig.parse(JSON.parse(text));
  const found = Object.entries(auths).find(([name]) => hostOf(name) === host)?.[1];
  if (found === undefined) return undefined;
  if (found.auth !== undefined && found.auth !== '') return found.auth;
  return found.username === undefined
    ? undefined
    : Buffer.from(`${found.username}:${found.password ?? ''}`).toString('base64');
}

/** Docker's files name a registry by its host or by a URL. */
function hostOf(name: string): string {
  return name.replace(/^https?:\/\//, '').replace(/\/.*$/, '');
}
