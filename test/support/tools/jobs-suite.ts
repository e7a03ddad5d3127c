// What jobs promise, on whatever database: to be run on PGlite and on PostgreSQL.
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { test } from 'vitest';
import { z } from 'zod';
import type { Database } from '../../../api/billing/database/database.ts';
import { Ledger } from '../../../api/billing/ledger/ledger.ts';
import { formatMoney, parseMoney } from '../../../api/billing/ledger/money.ts';
import { createAnonymousPayer, createKeyPayer, type Payer } from '../../../api/billing/ledger/accounts.ts';
import { ArtifactStore } from '../../../api/tools/engine/artifacts.ts';
import type { JobRun, JobView, JobWork } from '../../../api/tools/engine/jobs/jobs.ts';
import { Jobs, type JobsOptions } from '../../../api/tools/engine/jobs/jobs.ts';
import { toolBusy, unprocessable } from '../../../api/tools/problems.ts';
import { Problem } from '../../../lib/problem.ts';
import { silent } from '../api/sample.ts';

export const limits = {
  router: 'router',
  freeQuota: parseMoney('1'),
  dailyCap: parseMoney('100'),
  keyLimit: parseMoney('5'),
};
export const createPayer = (owner: string): Payer => createAnonymousPayer(owner, limits);
const keyed = (owner: string): Payer => createKeyPayer(owner, `sk-${owner}`, limits);
const signal = new AbortController().signal;
const slug =
  (expected: string) =>
  (error: unknown): boolean =>
    error instanceof Problem && error.type.slug === expected;

/** Jobs whose times are short. */
export function shortJobs(database: Database, work: JobWork, changes: Partial<JobsOptions> = {}): Jobs {
  return new Jobs({
    database: () => database,
    log: silent,
    work,
    tools: ['dig', 'paint'],
    anonymous: createPayer,
    pollMs: 20,
    leaseMs: 600,
    ...changes,
  });
}

export async function awaitEnd(jobs: Jobs, id: string, owner: string, tool = 'dig'): Promise<JobView> {
  return jobs.wait({ id, tool, owner }, { ms: 30_000, signal });
}

/** A call that is paid for: announced, held, settled. */
export async function spend(database: Database, { announce, payer }: JobRun, cost: string): Promise<void> {
  const ledger = new Ledger(database);
  const id = randomUUID();
  await announce(id);
  await ledger.reserve({ id, amount: parseMoney('0.01'), ttlMs: 60_000, debit: payer.debit, credit: payer.credit });
  await ledger.settle({ hold: id, cost: parseMoney(cost), source: 'billed' });
}

/** The file of a job, by its link: for whoever has it, without the caller's key. */
async function linked(database: Database, { artifact }: JobView): Promise<number[]> {
  return [...((await new ArtifactStore({ database: () => database }).get(artifact?.id ?? ''))?.bytes ?? [])];
}

/** `done` gets each database when a test is done with it. */
export function jobSuite(open: () => Promise<Database>, done: (database: Database) => Promise<void>): void {
  const onDatabase = (name: string, body: (database: Database) => Promise<void>): void => {
    test(name, async () => {
      const database = await open();
      try {
        await body(database);
      } finally {
        await done(database);
      }
    });
  };

  onDatabase(
    'a canceled job stops where it runs, also at another process, and what it cost until then stays',
    async (database) => {
      const stopped = Promise.withResolvers<unknown>();
      const begun = Promise.withResolvers<undefined>();
      const here = shortJobs(
        database,
        async (run) => {
          await spend(database, run, '0.002');
          begun.resolve(undefined);
          return new Promise((_resolve, reject) => {
            run.signal.addEventListener('abort', () => {
              stopped.resolve(run.signal.reason);
              reject(new Error('stopped'));
            });
          });
        },
        { leaseMs: 6_000 },
      );
      here.start();
      // It only begins jobs and looks at them.
      const there = shortJobs(database, () => Promise.reject(new Error('not here')));
      const context = randomUUID();
      const id = await there.begin({ tool: 'dig', input: {}, payer: createPayer('me'), session: undefined, context });
      await begun.promise;
      assert.equal(await there.cancel({ id: randomUUID(), tool: 'dig', owner: 'me' }), false);
      assert.equal(await there.cancel({ id, tool: 'dig', owner: 'me' }), true);
      assert.equal(await there.cancel({ id, tool: 'dig', owner: 'me' }), false);
      await stopped.promise;
      await here.stop();
      const view = await awaitEnd(there, id, 'me');
      assert.deepEqual(
        [view.state, view.problem?.slug, view.attempt, formatMoney(view.cost)],
        ['failed', 'job-canceled', 1, '0.002'],
      );
      assert.deepEqual(await there.list('me'), [], 'without a key, nothing is listed for a network');
      const [entry] = await there.listByContext(context);
      assert.deepEqual([entry?.id, entry?.state, entry?.problem], [id, 'failed', 'job-canceled']);
    },
  );

  onDatabase(
    'a job goes from queued over running to done, with progress, result, file and the exact cost',
    async (database) => {
      const go = Promise.withResolvers<undefined>();
      const jobs = shortJobs(database, async (run) => {
        run.report({ done: 0.5, message: 'half of it' });
        await spend(database, run, '0.001');
        await spend(database, run, '0.00000000025');
        await go.promise;
        return {
          result: { input: run.input, session: run.session, attempt: run.attempt },
          artifact: { bytes: new Uint8Array([0, 255, 10, 0]), mediaType: 'image/png', fileName: 'a.png' },
        };
      });
      const call = { tool: 'dig', input: { b: 'ü😀', a: [1, { c: null }] }, payer: createPayer('me'), session: 's1' };
      const id = await jobs.begin(call);
      const name = { id, tool: 'dig', owner: 'me' };
      assert.deepEqual([(await jobs.view(name)).state, await jobs.artifact(name)], ['queued', undefined]);
      jobs.start();
      const seen: string[] = [];
      const waited = jobs.wait(name, {
        ms: 30_000,
        signal,
        report: ({ done, message }) => {
          seen.push(`${done} ${message}`);
          if (seen.length === 1) go.resolve(undefined);
        },
      });
      const done = await waited;
      assert.deepEqual(seen, ['0.5 half of it']);
      assert.deepEqual(
        [done.state, done.progress, done.result, done.problem],
        ['done', 1, { input: call.input, session: 's1', attempt: 1 }, undefined],
      );
      assert.deepEqual(Object.keys(done.result?.['input'] ?? {}), ['b', 'a']);
      assert.deepEqual(
        { ...done.artifact, id: 'any' },
        { id: 'any', bytes: 4, mediaType: 'image/png', fileName: 'a.png' },
      );
      assert.deepEqual(await linked(database, done), [0, 255, 10, 0]);
      assert.deepEqual([formatMoney(done.cost), done.pending], ['0.00100000025', 0]);
      assert.deepEqual([...((await jobs.artifact(name))?.bytes ?? [])], [0, 255, 10, 0]);
      assert.ok(done.expiresAt.getTime() - (done.endedAt?.getTime() ?? 0) > 86_000_000);
      await jobs.stop();
    },
  );

  onDatabase('a job without a key is seen from anywhere by its id, and listed for nobody', async (database) => {
    const jobs = shortJobs(database, () => Promise.resolve({ result: {} }));
    const begin = (payer: Payer, context?: string): Promise<string> =>
      jobs.begin({ tool: 'dig', input: {}, payer, session: undefined, context });
    const id = await begin(createPayer('me'));
    assert.equal((await jobs.find(id, 'elsewhere')).id, id);
    assert.equal((await jobs.view({ id, tool: 'dig', owner: 'elsewhere' })).state, 'queued');
    assert.deepEqual(await jobs.list('me'), []);
    // A neighbour who sends the same call must not get the id of this one.
    assert.notEqual(await begin(createPayer('me')), id);
    const context = randomUUID();
    const inContext = [await begin(createPayer('me'), context), await begin(keyed('mine'), context)];
    assert.deepEqual(
      (await jobs.listByContext(context)).map((one) => one.id),
      inContext.slice(0, 1),
    );
    assert.equal(await jobs.cancel({ id, tool: 'dig', owner: 'elsewhere' }), true);
  });

  onDatabase('an anonymous job is paid for by the networks that it came from', async (database) => {
    const networks = { subnet: 'of /64', site: 'of /48' };
    const seen: unknown[] = [];
    const jobs = shortJobs(database, () => Promise.resolve({ result: {} }), {
      anonymous: (owner, given) => {
        seen.push([owner, given]);
        return createPayer(owner);
      },
    });
    const payer = createAnonymousPayer('of /56', limits, networks);
    const id = await jobs.begin({ tool: 'dig', input: {}, payer, session: undefined });
    jobs.start();
    await awaitEnd(jobs, id, 'of /56');
    await jobs.stop();
    assert.deepEqual(seen, [['of /56', networks]]);
  });

  onDatabase(
    'a job with a key is seen by its owner, under its tool and its id, and by nobody else',
    async (database) => {
      const jobs = shortJobs(database, () => Promise.resolve({ result: {} }));
      const id = await jobs.begin({ tool: 'dig', input: {}, payer: keyed('me'), session: undefined });
      assert.deepEqual(
        (await jobs.list('me')).map((one) => one.id),
        [id],
      );
      assert.equal(await jobs.cancel({ id, tool: 'dig', owner: 'you' }), false);
      for (const name of [
        { id, tool: 'dig', owner: 'you' },
        { id, tool: 'paint', owner: 'me' },
        { id: randomUUID(), tool: 'dig', owner: 'me' },
        { id: `${id}'`, tool: 'dig', owner: 'me' },
      ]) {
        await assert.rejects(jobs.view(name), slug('unknown-job'));
        await assert.rejects(jobs.artifact(name), slug('unknown-job'));
        await assert.rejects(jobs.wait(name, { ms: 10, signal }), slug('unknown-job'));
      }
    },
  );

  onDatabase(
    'the same call with a key is the same job while it is in progress; afterwards it is another',
    async (database) => {
      const jobs = shortJobs(database, () => Promise.resolve({ result: {} }));
      const begin = (input: Record<string, unknown>, owner = 'me'): Promise<string> =>
        jobs.begin({ tool: 'dig', input, payer: keyed(owner), session: undefined });
      const first = await begin({ q: 1 });
      assert.equal(await begin({ q: 1 }), first);
      assert.notEqual(await begin({ q: 2 }), first);
      assert.notEqual(await begin({ q: 1 }, 'you'), first);
      jobs.start();
      await awaitEnd(jobs, first, 'me');
      assert.notEqual(await begin({ q: 1 }), first);
      await jobs.stop();
    },
  );

  onDatabase(
    'a refusal is kept whole; a fault is reported without its insides; a file too large is refused',
    async (database) => {
      const works: Record<
        string,
        () => Promise<{
          result: Record<string, unknown>;
          artifact?: { bytes: Uint8Array; mediaType: string; fileName: string };
        }>
      > = {
        problem: () => Promise.reject(new Problem(unprocessable, 'line 3 is broken', { members: { line: 3 } })),
        fault: () => Promise.reject(new Error('password=secret')),
        large: () =>
          Promise.resolve({ result: {}, artifact: { bytes: new Uint8Array(2_000), mediaType: 'a/b', fileName: 'c' } }),
      };
      const jobs = shortJobs(database, (run) => works[String(run.input['work'])]?.() ?? assert.fail(), {
        maxBytes: { one: 1_000, all: 1_000_000 },
      });
      jobs.start();
      const problems = await Promise.all(
        Object.keys(works).map(
          async (work) =>
            (
              await awaitEnd(
                jobs,
                await jobs.begin({ tool: 'dig', input: { work }, payer: createPayer('me'), session: undefined }),
                'me',
              )
            ).problem,
        ),
      );
      assert.deepEqual(problems[0], { slug: 'unprocessable', detail: 'line 3 is broken', members: { line: 3 } });
      assert.deepEqual([problems[1]?.slug, problems[1]?.detail.includes('secret')], ['internal-fault', false]);
      assert.equal(problems[2]?.slug, 'tool-limit');
      await jobs.stop();
    },
  );

  onDatabase('jobs in progress are bounded for one caller and for all, and so is what is kept', async (database) => {
    const jobs = shortJobs(database, () => Promise.resolve({ result: {} }), {
      maximum: { anonymous: 2, key: 3, all: 4 },
      maxKept: 1,
    });
    const begin = (q: number, payer: Payer): Promise<string> =>
      jobs.begin({ tool: 'dig', input: { q }, payer, session: undefined });
    const ids = [await begin(1, createPayer('a')), await begin(2, createPayer('a'))];
    await assert.rejects(begin(3, createPayer('a')), slug('too-many-jobs'));
    await begin(1, createPayer('b'));
    await begin(1, createPayer('c'));
    await assert.rejects(begin(1, createPayer('d')), slug('too-many-jobs'));
    jobs.start();
    for (const id of ids) await awaitEnd(jobs, id, 'a');
    await awaitEnd(jobs, await begin(4, createPayer('a')), 'a');
    const kept = await Promise.all(
      ids.map((id) =>
        jobs.view({ id, tool: 'dig', owner: 'a' }).then(
          () => 1,
          () => 0,
        ),
      ),
    );
    assert.deepEqual(
      kept.reduce<number>((sum, one) => sum + one, 0),
      1,
    );
    await jobs.stop();
  });

  onDatabase(
    'a job is worked on once, however many processes look for work, and only by those that know its tool',
    async (database) => {
      const worked: string[] = [];
      const work =
        (process: string): JobWork =>
        async (run) => {
          worked.push(`${run.tool} ${process}`);
          await Promise.resolve();
          return { result: {} };
        };
      const many = [...Array(4).keys()].map((index) =>
        shortJobs(database, work(`digger ${index}`), {
          tools: ['dig'],
          maximum: { anonymous: 100, key: 100, all: 500 },
          maxKept: 100,
        }),
      );
      const painter = shortJobs(database, work('painter'), { tools: ['paint'] });
      const [first] = many;
      assert.ok(first !== undefined);
      const ids = await Promise.all(
        [...Array(40).keys()].map((q) =>
          first.begin({ tool: q < 38 ? 'dig' : 'paint', input: { q }, payer: createPayer('me'), session: undefined }),
        ),
      );
      for (const jobs of [...many, painter]) jobs.start();
      for (const [q, id] of ids.entries())
        assert.equal((await awaitEnd(first, id, 'me', q < 38 ? 'dig' : 'paint')).attempt, 1);
      assert.deepEqual(
        [
          worked.length,
          worked.filter((one) => one === 'paint painter').length,
          worked.filter((one) => one.startsWith('paint')).length,
        ],
        [40, 2, 2],
      );
      await Promise.all([...many, painter].map((jobs) => jobs.stop()));
    },
  );

  onDatabase('an orderly end gives a job back at once, and what both attempts cost is its cost', async (database) => {
    const begun = Promise.withResolvers<undefined>();
    const work: JobWork = async (run) => {
      await spend(database, run, '0.003');
      begun.resolve(undefined);
      await new Promise((_, reject) => {
        run.signal.addEventListener('abort', () => {
          reject(run.signal.reason as Error);
        });
      });
      return { result: {} };
    };
    const old = shortJobs(database, work, { leaseMs: 3_600_000 });
    old.start();
    const id = await old.begin({ tool: 'dig', input: {}, payer: createPayer('me'), session: undefined });
    await begun.promise;
    await old.stop();
    const fresh = shortJobs(database, async (run) => {
      await spend(database, run, '0.0004');
      return { result: { attempt: run.attempt } };
    });
    fresh.start();
    const done = await awaitEnd(fresh, id, 'me');
    assert.deepEqual([done.result, formatMoney(done.cost)], [{ attempt: 1 }, '0.0034']);
    await fresh.stop();
  });

  onDatabase('a job that finds no slot goes back into the queue', async (database) => {
    let calls = 0;
    const jobs = shortJobs(database, () => {
      calls += 1;
      return calls === 1 ? Promise.reject(new Problem(toolBusy, 'full')) : Promise.resolve({ result: {} });
    });
    jobs.start();
    const done = await awaitEnd(
      jobs,
      await jobs.begin({ tool: 'dig', input: {}, payer: createPayer('me'), session: undefined }),
      'me',
    );
    assert.deepEqual([done.state, done.attempt, calls], ['done', 1, 2]);
    await jobs.stop();
  });

  onDatabase('a process that was taken for dead writes nothing more, and spends nothing more', async (database) => {
    const go = Promise.withResolvers<undefined>();
    const refused = Promise.withResolvers<unknown>();
    const silentOne = shortJobs(database, async (run) => {
      await go.promise;
      await spend(database, run, '1').then(() => {
        refused.resolve('spent');
      }, refused.resolve);
      return { result: { by: 'the dead' } };
    });
    silentOne.start();
    const id = await silentOne.begin({ tool: 'dig', input: {}, payer: createPayer('me'), session: undefined });
    const state = async (): Promise<string> => (await silentOne.view({ id, tool: 'dig', owner: 'me' })).state;
    while ((await state()) !== 'running')
      await new Promise((resolve) => {
        setTimeout(resolve, 10);
      });
    // As if it had not been heard of for long.
    await database.query(
      {
        name: 'test-lapse',
        text: `update tools.job set runner = $2::uuid, lease_until = clock_timestamp() - interval '1 second' where id = $1::uuid`,
        row: z.unknown(),
      },
      [id, randomUUID()],
    );
    const other = shortJobs(database, () => Promise.resolve({ result: { by: 'the living' } }));
    other.start();
    assert.deepEqual((await awaitEnd(other, id, 'me')).result, { by: 'the living' });
    go.resolve(undefined);
    assert.match(String(await refused.promise), /another process has taken the job over/);
    await silentOne.stop();
    const last = await other.view({ id, tool: 'dig', owner: 'me' });
    assert.deepEqual([last.result, last.cost], [{ by: 'the living' }, 0n]);
    await other.stop();
  });

  onDatabase(
    'a key is written nowhere; its job is worked on where the key is, and lost with that process',
    async (database) => {
      const payer = createKeyPayer('key-owner', 'sk-very-secret-1234', limits);
      const keys: unknown[] = [];
      const other = shortJobs(database, () => Promise.resolve({ result: { by: 'other' } }));
      const holder = shortJobs(database, (run) => {
        keys.push(run.payer.key);
        return Promise.resolve({ result: { by: 'holder' } });
      });
      other.start();
      const id = await holder.begin({ tool: 'dig', input: { q: 1 }, payer, session: undefined });
      const text = JSON.stringify(
        await database.query({ name: 'test-dump', text: 'select * from tools.job', row: z.unknown() }, []),
      );
      assert.doesNotMatch(text, /secret/);
      holder.start();
      assert.deepEqual(
        [(await awaitEnd(holder, id, 'key-owner')).result, keys],
        [{ by: 'holder' }, ['sk-very-secret-1234']],
      );
      await holder.stop();
      // Begun in a process that never comes to it.
      const gone = shortJobs(database, () => Promise.reject(new Error('never')));
      const lost = await gone.begin({ tool: 'dig', input: { q: 2 }, payer, session: undefined });
      const view = await awaitEnd(other, lost, 'key-owner');
      assert.deepEqual([view.state, view.problem?.slug], ['failed', 'job-lost']);
      assert.match(view.problem?.detail ?? '', /the key is stored nowhere else/);
      await other.stop();
    },
  );

  onDatabase('a job that ends every process that takes it up is begun so often and no more', async (database) => {
    const jobs = shortJobs(database, () => Promise.resolve({ result: {} }), { attempts: 2 });
    const id = await jobs.begin({ tool: 'dig', input: {}, payer: createPayer('me'), session: undefined });
    await database.query(
      {
        name: 'test-dead',
        text: `update tools.job set state = 'running', attempt = 2, runner = $2::uuid, lease_until = clock_timestamp() where id = $1::uuid`,
        row: z.unknown(),
      },
      [id, randomUUID()],
    );
    jobs.start();
    assert.equal((await awaitEnd(jobs, id, 'me')).problem?.slug, 'job-lost');
    await jobs.stop();
  });

  onDatabase('what has expired is forgotten, and the oldest files go when all are too many', async (database) => {
    const jobs = shortJobs(
      database,
      () => Promise.resolve({ result: {}, artifact: { bytes: new Uint8Array(600), mediaType: 'a/b', fileName: 'c' } }),
      { maxBytes: { one: 1_000, all: 1_000 } },
    );
    jobs.start();
    const begin = async (q: number): Promise<string> =>
      jobs.begin({ tool: 'dig', input: { q }, payer: createPayer('me'), session: undefined });
    const ids = [await begin(1)];
    await awaitEnd(jobs, ids[0] ?? '', 'me');
    ids.push(await begin(2));
    await awaitEnd(jobs, ids[1] ?? '', 'me');
    assert.equal(await jobs.purge(), 1);
    const name = (id = ''): { id: string; tool: string; owner: string } => ({ id, tool: 'dig', owner: 'me' });
    await assert.rejects(jobs.view(name(ids[0])), slug('unknown-job'));
    assert.equal((await jobs.view(name(ids[1]))).state, 'done');
    await database.query(
      { name: 'test-expire', text: `update tools.job set expires_at = clock_timestamp()`, row: z.unknown() },
      [],
    );
    await assert.rejects(jobs.view(name(ids[1])), slug('unknown-job'));
    assert.equal(await jobs.purge(), 1);
    await jobs.stop();
  });
}
