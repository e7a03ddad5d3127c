// helm and kubectl: those on the PATH, or else compiled into the cache.
import { access, constants } from 'node:fs/promises';
import { delimiter, join } from 'node:path';
import { binary, buildPart } from '../binaries/build.ts';
import type { Part } from '../binaries/recipes.ts';

/** The command's path if it is on the PATH, or undefined. */
export async function onPath(name: string): Promise<string | undefined> {
  for (const folder of (process.env['PATH'] ?? '').split(delimiter)) {
    const file = join(folder, name);
    if (
      await access(file, constants.X_OK).then(
        () => true,
        () => false,
      )
    )
      return file;
  }
  return undefined;
}

/** The path of a command, compiled into the cache when the machine has none. */
export async function findTool(name: string, part: Part): Promise<string> {
  const present = await onPath(name);
  if (present !== undefined) return present;
  await buildPart(part);
  return binary(part, name);
}
