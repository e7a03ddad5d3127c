// Finding, keeping, replacing and ending real processes.
import assert from 'node:assert/strict';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, test } from 'vitest';
import {
  ensureProcess,
  findProcess,
  parseRecord,
  listProcessNames,
  parseStartTime,
  stopProcess,
  type ProcessSpec,
} from '../../../../../localnode/node/daemons/processes.ts';

const folder = await mkdtemp(join(tmpdir(), 'moorage-processes-'));
const processFolders = { run: join(folder, 'run'), logs: join(folder, 'log') };
afterAll(async () => {
  for (const name of await listProcessNames(processFolders)) await stopProcess(processFolders, name, 0);
  await rm(folder, { recursive: true });
});

const sleeper = (name: string, ...args: string[]): ProcessSpec => ({
  name,
  command: '/bin/sh',
  args: ['-c', 'sleep 600', ...args],
  isReady: () => Promise.resolve(true),
});

test('parses the start time after any command name', () => {
  const fields = ['S', ...Array.from({ length: 18 }, (_, index) => String(index)), '4711', '0'];
  assert.equal(parseStartTime(`12 (a) b (c)) ${fields.join(' ')}`), '4711');
  assert.equal(parseStartTime('12 (short) S'), undefined);
  assert.equal(parseRecord(''), undefined);
  assert.equal(parseRecord('key\nnonsense'), undefined);
});

test('starts a process once, keeps it while its command is the same, and replaces it otherwise', async () => {
  assert.equal(await ensureProcess(processFolders, sleeper('one')), true);
  const first = await findProcess(processFolders, 'one');
  assert.equal(await ensureProcess(processFolders, sleeper('one')), false);
  assert.deepEqual(await findProcess(processFolders, 'one'), first);
  assert.equal(await ensureProcess(processFolders, sleeper('one', 'other')), true);
  assert.notEqual((await findProcess(processFolders, 'one'))?.pid, first?.pid);
});

test('restarts a killed process', async () => {
  await ensureProcess(processFolders, sleeper('two'));
  const first = await findProcess(processFolders, 'two');
  process.kill(first?.pid ?? 0, 'SIGKILL');
  while ((await findProcess(processFolders, 'two')) !== undefined) await new Promise((done) => setImmediate(done));
  assert.equal(await ensureProcess(processFolders, sleeper('two')), true);
});

test('neither adopts nor kills a process that reuses the pid', async () => {
  await ensureProcess(processFolders, sleeper('three'));
  const file = join(processFolders.run, 'three.pid');
  const text = await readFile(file, 'utf8');
  const victim = parseRecord(text);
  // The same pid, started at another time.
  await writeFile(file, text.replace(new RegExp(` ${victim?.startTime ?? ''} `), ' 1 '));
  assert.equal(await findProcess(processFolders, 'three'), undefined);
  await stopProcess(processFolders, 'three');
  assert.doesNotThrow(() => process.kill(victim?.pid ?? 0, 0));
  process.kill(victim?.pid ?? 0, 'SIGKILL');
});

test('reports a process that exits immediately, with the end of its log', async () => {
  const spec: ProcessSpec = {
    name: 'four',
    command: '/bin/sh',
    args: ['-c', 'echo no such disk; exit 3'],
    isReady: () => Promise.resolve(false),
  };
  await assert.rejects(
    ensureProcess(processFolders, spec),
    /four exited right after it started; last lines of .*four\.log:\n {2}no such disk/,
  );
});

test('kills a process that ignores SIGTERM', async () => {
  const ready = join(folder, 'deaf');
  const spec: ProcessSpec = {
    name: 'five',
    command: '/bin/sh',
    args: ['-c', `trap "" TERM; echo > ${ready}; while :; do sleep 0.05; done`],
    isReady: async () => (await readFile(ready).catch(() => undefined)) !== undefined,
  };
  await ensureProcess(processFolders, spec);
  await stopProcess(processFolders, 'five', 0.1);
  assert.equal(await findProcess(processFolders, 'five'), undefined);
});
