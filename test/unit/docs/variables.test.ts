// Every environment variable that a program reads is in the reference or in a guide.
import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'vitest';

const root = join(import.meta.dirname, '../../..');

function filesIn(folder: string, extension: string): string[] {
  return readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith(extension))
    .map((file) => readFileSync(join(root, folder, file), 'utf8'));
}

/** Given by one program of ours to another; nobody sets them. */
const internal: ReadonlySet<string> = new Set([
  'MOORAGE_BUILDKIT_ROOT',
  'MOORAGE_DEMO_ROUTER_PORT',
  'MOORAGE_GIT_TOKEN',
  'MOORAGE_PROXY_HOST',
  'MOORAGE_PROXY_PORT',
  'MOORAGE_TERMINATION_LOG',
  'MOORAGE_WORKSPACE',
]);

test('no variable is read that no page names', () => {
  const pages = filesIn('docs', '.md').join('\n');
  const sources = ['activator', 'api', 'cli', 'controller', 'lib', 'localnode'].flatMap((folder) =>
    filesIn(folder, '.ts'),
  );
  // As a key of a schema or of the environment.
  const read = sources.flatMap((text) =>
    [
      ...text.matchAll(
        /\b(MOORAGE_[A-Z0-9_]+)(?=: (?:z|count|port|subnets|flag|list|domain|kinds|secret|httpUrl|internalPort|installationSettings|defineSetting)\b|'\])/g,
      ),
    ].map(([name]) => name),
  );
  assert.ok(read.includes('MOORAGE_STATE') && read.includes('MOORAGE_PROBE_URL'));
  assert.deepEqual([...new Set(read)].filter((name) => !pages.includes(name) && !internal.has(name)).sort(), []);
});
