// Finds which requirements the titles of tests cite: `[spec ask.402 compare.402]`.
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

export interface Citation {
  readonly id: string;
  readonly file: string;
}

const folder = join(import.meta.dirname, '..');

/** Every citation of every test, and of the suites that several tests share. */
export function listCitations(): Citation[] {
  return globSync('**/*.ts', {
    cwd: folder,
    exclude: ['fixtures/**', 'support/citations.ts', 'requirements.ts', 'unit/requirements.test.ts'],
  })
    .sort()
    .flatMap((file) => listCitedIds(readFileSync(join(folder, file), 'utf8')).map((id) => ({ id, file })));
}

/**
 * The ids that the strings of a source cite: titles of tests, and names of cases that become titles. What comments say
 * does not count.
 */
export function listCitedIds(source: string): string[] {
  const strings = source
    .split('\n')
    .filter((line) => !/^\s*(\/\/|\*|\/\*)/.test(line))
    .flatMap((line) => [...line.matchAll(/(['`])((?:(?!\1).)*)\1/g)].map(([, , text = '']) => text));
  return strings.flatMap((text) =>
    [...text.matchAll(/\[spec ([^\]]*)\]/g)].flatMap(([, ids = '']) => ids.trim().split(/\s+/)),
  );
}
