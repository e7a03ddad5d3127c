// What is read from kubectl's answers.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import { listPressures } from '../../../localnode/kubectl.ts';

const node = (name: string, conditions: Record<string, string>) => ({
  metadata: { name },
  status: { conditions: Object.entries(conditions).map(([type, status]) => ({ type, status })) },
});

test('names a node under pressure and the resource that it lacks', () => {
  const healthy = { MemoryPressure: 'False', DiskPressure: 'False', PIDPressure: 'False', Ready: 'True' };
  const items = [node('one', healthy), node('two', { ...healthy, DiskPressure: 'True' })];
  assert.deepEqual(listPressures(JSON.stringify({ items })), [
    'node two is short of disk space, so it evicts pods and starts none: free some (DiskPressure)',
  ]);
});
