// What buildctl shows the registry proxy: the token of this app, in the one form that it reads. No step sees it.
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { childEnvironment } from '../../../lib/child-environment.ts';

/** The name that goes with a token; the proxy does not look at it. */
const user = 'moorage';

/** The environment of buildctl, with a folder of its own for the token. */
export async function clientEnvironment(
  host: string,
  token: string | undefined,
  folder: string,
): Promise<Record<string, string>> {
  if (token === undefined) return childEnvironment();
  await mkdir(folder, { recursive: true, mode: 0o700 });
  const auth = Buffer.from(`${user}:${token}`).toString('base64');
  await writeFile(join(folder, 'config.json'), JSON.stringify({ auths: { [host]: { auth } } }), { mode: 0o600 });
  return { ...childEnvironment(), DOCKER_CONFIG: folder };
}
