// Checks that every source file of fewer than 40 lines is small for a reason. Files are chapters: one that is not listed
// here belongs to another one.
import assert from 'node:assert/strict';
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'vitest';

const root = join(import.meta.dirname, '..', '..');
const minLines = 40;

const index = 'the index of a room, which its neighbours import from';
const program = 'the entry point of a program';
const alone = 'runs alone in another process';
const data = 'data';
const shared = 'several rooms need it';

/** Files that may be small, and why. */
const reasons: Readonly<Record<string, string>> = {
  'api/accounting/index.ts': index,
  'api/accounting/metering/index.ts': index,
  'api/accounting/receipts/index.ts': index,
  'api/accounting/reconciliation/index.ts': index,
  'api/accounting/revenue/index.ts': index,
  'api/catalog/index.ts': index,
  'api/demo-router.ts': program,
  'api/http/index.ts': index,
  'api/http/service.ts': data,
  'api/models/index.ts': index,
  'api/pages/index.ts': index,
  'api/protocols/a2a/index.ts': index,
  'api/protocols/discovery/index.ts': index,
  'api/protocols/index.ts': index,
  'api/protocols/mcp/index.ts': index,
  'api/tools/builtin/ocr-image/thread.ts': alone,
  'api/tools/fetch/proxy-main.ts': program,
  'api/tools/patterns/all-patterns.ts': 'replaces RegExp when it is imported, which only some workers may do',
  'api/tools/svg/opentype.d.ts': 'types for a package that has none',
  'charts/monitoring/all.ts': data,
  'cli/main.ts': program,
  'controller/main.ts': program,
  'crds/generate.ts': program,
  'lib/git/read-token.ts': alone,
  'lib/kubernetes/index.ts': index,
  'localnode/node/network/cni.ts': shared,
  'localnode/node/registry/main.ts': program,
  'localnode/npm.ts': shared,
  'localnode/paths.ts': data,
  'localnode/registry/clean.ts': program,
};

const smallFiles = listSmallFiles();

test(`a file of fewer than ${minLines} lines has a reason`, () => {
  assert.deepEqual(
    smallFiles.filter((file) => reasons[file] === undefined),
    [],
    'Merge each of these files into the one that it belongs to, or list it with a reason in test/unit/small-files.test.ts.',
  );
});

test('every listed file still exists and is small', () => {
  assert.deepEqual(
    Object.keys(reasons).filter((file) => !smallFiles.includes(file)),
    [],
    `Remove these files from test/unit/small-files.test.ts: they are gone, or have ${minLines} lines or more.`,
  );
});

function listSmallFiles(): string[] {
  const files = globSync(['*.ts', '{activator,api,charts,cli,controller,crds,docs,lib,localnode,manifests}/**/*.ts'], {
    cwd: root,
    exclude: ['**/node_modules/**'],
  });
  return files.filter((file) => readFileSync(join(root, file), 'utf8').trimEnd().split('\n').length < minLines).sort();
}
