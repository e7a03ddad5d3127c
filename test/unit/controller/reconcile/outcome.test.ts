// Each reason of the list is used by a step. The types make sure that none is missing.
import assert from 'node:assert/strict';
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'vitest';
import { commonReasons, reasons } from '../../../../controller/reconcile/outcome.ts';

const controller = join(import.meta.dirname, '..', '..', '..', '..', 'controller');
// The list itself has its reasons without quotes.
const code = globSync(['{steps,reconcile}/**/*.ts'], { cwd: controller })
  .map((file) => readFileSync(join(controller, file), 'utf8'))
  .join('\n');

test('uses every listed reason in a step', () => {
  const listed = [commonReasons, ...Object.values(reasons)].flatMap((each) => Object.keys(each));
  assert.deepEqual(
    listed.filter((reason) => !code.includes(`'${reason}'`)),
    [],
  );
});
