// The list of reasons names no reason that no step gives any more. That none is missing is a matter of types.
import assert from 'node:assert/strict';
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'vitest';
import { commonReasons, reasons } from '../../../../controller/reconcile/reasons.ts';

const controller = join(import.meta.dirname, '..', '..', '..', '..', 'controller');
const code = globSync(['{steps,reconcile}/**/*.ts'], { cwd: controller, exclude: ['reconcile/reasons.ts'] })
  .map((file) => readFileSync(join(controller, file), 'utf8'))
  .join('\n');

test('each reason of the list is given somewhere', () => {
  const listed = [commonReasons, ...Object.values(reasons)].flatMap((each) => Object.keys(each));
  assert.deepEqual(
    listed.filter((reason) => !code.includes(`'${reason}'`)),
    [],
  );
});
