// The reflector under any mixture of changes and faults: in the end the cache is what the server has.
import assert from 'node:assert/strict';
import fc from 'fast-check';
import { test } from 'vitest';
import { toObjectKey } from '../../../../../lib/kubernetes/index.ts';
import { send, status } from '../../../../support/kubernetes/fake-api.ts';
import type { Bench } from '../../../../support/kubernetes/reflector-bench.ts';
import { bench, KIND, thing } from '../../../../support/kubernetes/reflector-bench.ts';

const names = fc.constantFrom('a', 'b', 'c', 'd', 'e');
const happening = fc.oneof(
  { weight: 6, arbitrary: fc.record({ do: fc.constant('put' as const), name: names }) },
  { weight: 3, arbitrary: fc.record({ do: fc.constant('remove' as const), name: names }) },
  {
    weight: 3,
    arbitrary: fc.record({
      do: fc.constant('break' as const),
      how: fc.constantFrom('end' as const, 'cut' as const, 'gone' as const),
    }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('compact' as const) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('bookmark' as const) }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('settle' as const) }) },
  {
    weight: 1,
    arbitrary: fc.record({
      do: fc.constant('refuse' as const),
      code: fc.constantFrom(500, 410, 429, 403),
      times: fc.integer({ min: 1, max: 3 }),
    }),
  },
);
type Happening = typeof happening extends fc.Arbitrary<infer H> ? H : never;

async function happen(made: Bench, event: Happening): Promise<void> {
  const { api } = made;
  switch (event.do) {
    case 'put':
      api.put(KIND, thing(event.name, api.version));
      break;
    case 'remove':
      api.remove(KIND, event.name, 'apps');
      break;
    case 'break':
      api.breakWatches(event.how);
      break;
    case 'compact':
      api.compact();
      break;
    case 'bookmark':
      api.bookmark();
      break;
    case 'settle':
      await made.same();
      break;
    case 'refuse': {
      let left = event.times;
      api.faults.push((_request, response) => {
        if (left-- <= 0) return false;
        send(response, event.code, status(event.code, 'Nope', 'not now'));
        return true;
      });
    }
  }
}

test(
  'whatever happens to the server and the connection, the cache ends as the server is, by changes that make sense',
  { timeout: 120_000 },
  async () => {
    const property = fc.asyncProperty(
      fc.array(happening, { maxLength: 40 }),
      fc.integer({ min: 1, max: 3 }),
      async (events, pageSize) => {
        const made = await bench(() => undefined, { pageSize, backoffMs: [1, 2] });
        const live = new Map<string, string>();
        const faults: string[] = [];
        made.reflector.store.subscribe(({ type, object }) => {
          const key = toObjectKey(object);
          if (live.get(key) !== (type === 'added' ? undefined : object.metadata.uid)) faults.push(`${key} ${type}`);
          if (type === 'deleted') live.delete(key);
          else live.set(key, object.metadata.uid);
        });
        try {
          for (const event of events) await happen(made, event);
          await made.same();
          await made.reflector.store.waitUntilSynced();
          assert.deepEqual(faults, []);
          assert.equal(live.size, made.reflector.store.size);
        } finally {
          await made.stop();
        }
      },
    );
    await fc.assert(property, { numRuns: 100 });
  },
);
