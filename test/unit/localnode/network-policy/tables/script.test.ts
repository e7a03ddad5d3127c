// The difference between two states touches what differs and nothing else, in an order that the kernel accepts.
import assert from 'node:assert/strict';
import fc from 'fast-check';
import { test } from 'vitest';
import { createApplier } from '../../../../../localnode/network-policy/tables/apply.ts';
import {
  renderChangeScript,
  replaceScript,
  type NftTable,
} from '../../../../../localnode/network-policy/tables/script.ts';

const name = fc.constantFrom('a', 'b', 'c');
const element = fc.constantFrom('1', '2', '3');
const set = fc.record({
  type: fc.constant('mark'),
  elements: fc.array(element).map((all) => new Map(all.map((key) => [key, '']))),
});
const chain = fc.record({ rules: fc.array(fc.constantFrom('accept', 'drop', 'return'), { maxLength: 3 }) });
const table: fc.Arbitrary<NftTable> = fc.record({
  family: fc.constant('inet' as const),
  name: fc.constant('t'),
  sets: fc
    .array(
      fc.tuple(
        name.map((each) => `set-${each}`),
        set,
      ),
    )
    .map((all) => new Map(all)),
  chains: fc
    .array(
      fc.tuple(
        name.map((each) => `chain-${each}`),
        chain,
      ),
    )
    .map((all) => new Map(all)),
});

interface Kernel {
  chains: Map<string, string[]>;
  sets: Map<string, Set<string>>;
}

function known<T>(there: ReadonlyMap<string, T>, name: string): T {
  const found = there.get(name);
  assert(found !== undefined, `${name} is not there`);
  return found;
}

const elementsOf = (rest: string): string[] => rest.replaceAll(/[{} ]/g, '').split(',');

/** A kernel of a few lines: it refuses what the real one refuses. */
const commands: Record<string, (kernel: Kernel, name: string, rest: string) => void> = {
  'add chain': ({ chains }, name) => {
    assert(!chains.has(name));
    chains.set(name, []);
  },
  'flush chain': ({ chains }, name) => {
    known(chains, name).length = 0;
  },
  'delete chain': ({ chains }, name) => {
    assert.deepEqual(known(chains, name), []);
    chains.delete(name);
  },
  'add rule': ({ chains }, name, rest) => {
    known(chains, name).push(rest);
  },
  'add set': ({ sets }, name) => {
    assert(!sets.has(name));
    sets.set(name, new Set());
  },
  'delete set': ({ sets }, name) => {
    assert(sets.delete(name));
  },
  'add element': ({ sets }, name, rest) => {
    for (const each of elementsOf(rest)) {
      assert(!known(sets, name).has(each));
      known(sets, name).add(each);
    }
  },
  'delete element': ({ sets }, name, rest) => {
    for (const each of elementsOf(rest)) assert(known(sets, name).delete(each));
  },
};

function interpret(script: string, kernel: Kernel): void {
  for (const line of script.split('\n').filter((each) => each !== '')) {
    const [verb = '', kind = '', , , name = '', ...rest] = line.split(' ');
    const command = commands[`${verb} ${kind}`];
    assert(command !== undefined, line);
    command(kernel, name, rest.join(' '));
  }
}

function contents(of: NftTable): Kernel {
  const sets = new Map([...of.sets].map(([key, { elements }]) => [key, new Set(elements.keys())]));
  return { chains: new Map([...of.chains].map(([key, { rules }]) => [key, [...rules]])), sets };
}

test('renders a difference that leads from any state to any other, and is empty between equal ones', () => {
  fc.assert(
    fc.property(table, table, (from, to) => {
      const kernel = contents(from);
      interpret(renderChangeScript(from, to), kernel);
      assert.deepEqual(kernel, contents(to));
      assert.equal(renderChangeScript(to, to), '');
    }),
    { numRuns: 500 },
  );
});

const one: NftTable = {
  family: 'inet',
  name: 't',
  sets: new Map([['s', { type: 'mark', elements: new Map([['1', '']]) }]]),
  chains: new Map(),
};
const two: NftTable = { ...one, sets: new Map([['s', { type: 'mark', elements: new Map([['2', '']]) }]]) };

test('replaces everything in one transaction the first time, then sends only the difference', async () => {
  const scripts: string[] = [];
  const applier = createApplier(async (script) => {
    scripts.push(script);
    return Promise.resolve();
  });
  assert.deepEqual(
    [await applier.apply([one]), await applier.apply([one]), await applier.apply([two])],
    [true, false, true],
  );
  assert.deepEqual(scripts, [replaceScript(one), 'delete element inet t s { 1 }\nadd element inet t s { 2 }\n']);
  applier.invalidate();
  assert.equal(await applier.apply([two]), false);
  assert.equal(scripts.at(-1), replaceScript(two));
});

test('sends everything after a rejected difference, and reports and retries a rejected full script', async () => {
  const scripts: string[] = [];
  let refused = 0;
  const applier = createApplier(async (script) => {
    scripts.push(script);
    return refused-- > 0 ? Promise.reject(new Error('refused')) : Promise.resolve();
  });
  await applier.apply([one]);
  refused = 1;
  await applier.apply([two]);
  assert.equal(scripts.at(-1), replaceScript(two));
  refused = 2;
  await assert.rejects(applier.apply([one]), /refused/);
  await applier.apply([one]);
  assert.equal(scripts.at(-1), replaceScript(one));
});
