// Finds clones of repositories on this machine: FOLDER/OWNER/NAME, FOLDER/OWNER+NAME or FOLDER/NAME.
import { statSync } from 'node:fs';
import { join } from 'node:path';

export function copyOf(repository: string, folder: string): string | undefined {
  const name = repository.split('/')[1] ?? repository;
  return [repository, repository.replace('/', '+'), name]
    .map((path) => join(folder, path))
    .find((path) => statSync(path, { throwIfNoEntry: false })?.isDirectory() === true);
}
