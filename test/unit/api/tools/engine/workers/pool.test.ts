// What happens to the slot of a task whose process cannot be started.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import { createWorkers } from '../../../../../../api/tools/engine/workers/pool.ts';

const module = new URL('../../../../../support/tools/worker-module.ts', import.meta.url);

test('frees the slot of a task whose process cannot be started', async () => {
  const workers = createWorkers({ size: 1, maxWaitMs: 1_000 });
  // A process is given the folder of its module to read, and this module has none.
  const unstartable = new URL('data:text/javascript,0');
  for (let tries = 0; tries < 3; tries += 1)
    await assert.rejects(workers.run({ module: unstartable, input: {} }, { owner: 'a' }), {
      code: 'ERR_INVALID_URL_SCHEME',
    });
  assert.equal(await workers.run({ module, input: { deed: 'echo', value: 1 } }, { owner: 'a' }), 1);
  await workers.close();
});
