// Steps: order, lanes, failures.
import assert from 'node:assert/strict';
import { setImmediate as tick } from 'node:timers/promises';
import fc from 'fast-check';
import { test } from 'vitest';
import { checkSteps, runSteps, StepError, type Reporter, type Step } from '../../../localnode/steps.ts';

const ignore = (): undefined => undefined;
const quiet: Reporter = {
  begin: ignore,
  reportStart: ignore,
  reportProgress: ignore,
  reportDone: ignore,
  reportFailure: ignore,
  end: ignore,
};

/** Lists in which each step needs some of those before it, shuffled. */
const plans = fc
  .array(
    fc.record({
      needs: fc.array(fc.nat(20), { maxLength: 3 }),
      lane: fc.option(fc.constantFrom('a', 'b'), { nil: undefined }),
      ticks: fc.nat(4),
    }),
    { minLength: 1, maxLength: 12 },
  )
  .chain((drafts) => {
    const steps = drafts.map(({ needs, lane, ticks }, index) => ({
      name: `s${index}`,
      needs: index === 0 ? [] : [...new Set(needs.map((need) => `s${need % index}`))],
      lane,
      ticks,
    }));
    return fc.shuffledSubarray(steps, { minLength: steps.length, maxLength: steps.length });
  });

test('runs every step once, after its dependencies, and never in parallel with another of its lane', async () => {
  await fc.assert(
    fc.asyncProperty(plans, async (plan) => {
      const finished = new Set<string>();
      const lanes = new Set<string>();
      const runs: string[] = [];
      const steps = plan.map(({ name, needs, lane, ticks }): Step => ({
        name,
        needs,
        ...(lane === undefined ? {} : { lane }),
        run: async () => {
          runs.push(name);
          assert.deepEqual(
            needs.filter((need) => !finished.has(need)),
            [],
          );
          if (lane !== undefined) {
            assert.ok(!lanes.has(lane));
            lanes.add(lane);
          }
          for (let count = 0; count < ticks; count += 1) await tick();
          if (lane !== undefined) lanes.delete(lane);
          finished.add(name);
          return undefined;
        },
      }));
      await runSteps(steps, quiet);
      assert.deepEqual(runs.toSorted(), plan.map(({ name }) => name).toSorted());
    }),
    { numRuns: 60 },
  );
});

test('starts no step after a failure, waits for running ones, and names the failed step', async () => {
  const events: string[] = [];
  const steps: Step[] = [
    {
      name: 'long',
      run: async () => {
        for (let count = 0; count < 5; count += 1) await tick();
        events.push('long ended');
        return undefined;
      },
    },
    { name: 'broken', run: () => Promise.reject(new Error('no disk')) },
    {
      name: 'after',
      needs: ['long'],
      run: () => {
        events.push('after');
        return Promise.resolve(undefined);
      },
    },
  ];
  await assert.rejects(
    runSteps(steps, quiet),
    (error) =>
      error instanceof StepError && error.step === 'broken' && error.message === 'step "broken" failed: no disk',
  );
  assert.deepEqual(events, ['long ended']);
});

test('reports the plan, each step with its progress, and the end', async () => {
  const heard: string[] = [];
  const hear = (event: string): void => {
    heard.push(event);
  };
  const steps: Step[] = [
    {
      name: 'compile',
      run: (report) => {
        report('1 of 2 packages');
        return Promise.resolve('compiled');
      },
    },
    { name: 'push', needs: ['compile'], run: () => Promise.reject(new Error('no registry')) },
  ];
  const running = runSteps(steps, {
    begin: ({ length }) => {
      hear(`${length} steps`);
    },
    reportStart: ({ name }) => {
      hear(`${name} started`);
    },
    reportProgress: ({ name }, text) => {
      hear(`${name}: ${text}`);
    },
    reportDone: ({ name }, detail) => {
      hear(`${name} ${detail}`);
    },
    reportFailure: ({ name }) => {
      hear(`${name} failed`);
    },
    end: () => {
      hear('end');
    },
  });
  await assert.rejects(running, StepError);
  assert.deepEqual(heard, [
    '2 steps',
    'compile started',
    'compile: 1 of 2 packages',
    'compile compiled',
    'push started',
    'push failed',
    'end',
  ]);
});

test('rejects unknown dependencies, cycles and duplicate names before it runs anything', () => {
  const step = (name: string, ...needs: string[]): Step => ({ name, needs, run: () => Promise.resolve(undefined) });
  assert.throws(() => {
    checkSteps([step('a', 'b')]);
  }, /step "a" needs "b", which does not exist/);
  assert.throws(() => {
    checkSteps([step('a', 'b'), step('b', 'a'), step('c')]);
  }, /wait for each other: a, b/);
  assert.throws(() => {
    checkSteps([step('a'), step('a')]);
  }, /same name/);
});

test('a later run may depend on steps of an earlier one, and repeats none', async () => {
  const done: string[] = [];
  const createStep = (name: string, needs: readonly string[]): Step => ({
    name,
    needs,
    run: () => {
      done.push(name);
      return Promise.resolve(undefined);
    },
  });
  const first = [createStep('registry', [])];
  const later = [createStep('image', ['registry'])];
  assert.throws(() => {
    checkSteps(later);
  }, /needs "registry"/);
  await runSteps(first, quiet);
  await runSteps(later, quiet, first);
  assert.deepEqual(done, ['registry', 'image']);
  assert.throws(() => {
    checkSteps(first, first);
  }, /same name/);
});
