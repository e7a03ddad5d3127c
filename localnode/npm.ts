// Unpacks npm packages into the cache.
import { mkdir, readdir, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';
import { readText } from './files.ts';
import { paths } from './paths.ts';
import { run } from './shell.ts';

const manifest = z.object({ version: z.string() });

/** Downloads one exact version of a package (npm verifies its digest) and returns the folder with its files. */
export async function unpackNpm(name: string, version: string): Promise<string> {
  const folder = join(paths.cache, 'npm', `${name}-${version}`);
  const present = await readText(join(folder, 'package.json'));
  if (present !== undefined && manifest.parse(JSON.parse(present)).version === version) return folder;
  const draft = `${folder}.draft`;
  await rm(draft, { recursive: true, force: true });
  await mkdir(draft, { recursive: true });
  await run('npm', ['pack', '--silent', '--pack-destination', draft, `${name}@${version}`], { cwd: draft });
  const archive = (await readdir(draft)).find((file) => file.endsWith('.tgz'));
  if (archive === undefined) throw new Error(`npm pack ${name}@${version} left no archive in ${draft}`);
  await run('tar', ['-xzf', archive, '--no-same-owner'], { cwd: draft });
  await rm(folder, { recursive: true, force: true });
  await rename(join(draft, 'package'), folder);
  await rm(draft, { recursive: true, force: true });
  return folder;
}
