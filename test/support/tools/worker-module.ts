// What a module in a worker may do, good and bad.
import { readFileSync, writeFileSync } from 'node:fs';
import { execFileSync } from 'node:child_process';
import { setTimeout as sleep } from 'node:timers/promises';
import { Problem } from '../../../lib/problem.ts';
import { unprocessable } from '../../../api/tools/problems.ts';

interface Input {
  readonly deed: keyof typeof deeds;
  readonly value?: unknown;
}

/** Not among the types of Node. */
const { Memory } = (
  globalThis as unknown as {
    WebAssembly: { Memory: new (limits: { initial: number; maximum: number }) => { grow(pages: number): void } };
  }
).WebAssembly;

let count = 0;

const deeds = {
  echo: (value: unknown) => value,
  process: () => ({ pid: process.pid, count: (count += 1) }),
  environment: () => Object.keys(process.env),
  loop: () => {
    for (;;);
  },
  /** Until it has had so much processor time. */
  work: (ms: unknown) => {
    const before = process.cpuUsage();
    const spentMs = (): number => {
      const { user, system } = process.cpuUsage(before);
      return (user + system) / 1_000;
    };
    while (spentMs() < Number(ms));
    return 'done';
  },
  sleep: (ms: unknown) => sleep(Number(ms)),
  times: async (ms: unknown) => {
    const from = Date.now();
    await sleep(Number(ms));
    return { from, to: Date.now() };
  },
  /** Native memory, a little at a time, and then holds it. */
  grow: async (mb: unknown) => {
    const list: Buffer[] = [];
    while (list.length < Number(mb) / 10) {
      list.push(Buffer.alloc(10_485_760, 1));
      await sleep(20);
    }
    await sleep(20_000);
    return list.length;
  },
  refuse: () => {
    throw new Problem(unprocessable, 'line 3 is wrong', { members: { line: 3 } });
  },
  fail: () => {
    throw new TypeError('a fault of the module');
  },
  leave: () => process.exit(3),
  unclonable: () => () => 1,
  doubling: () => {
    const list: number[] = [];
    for (;;) list.push(1);
  },
  huge: () => new Array<number>(5e8).fill(0),
  split: () => 'a'.repeat(2 ** 28).split(''),
  buffers: () => {
    const list: Buffer[] = [];
    for (;;) list.push(Buffer.alloc(1e6, 1));
  },
  wasm: () => {
    const memory = new Memory({ initial: 1, maximum: 65_536 });
    for (;;) memory.grow(100);
  },
  read: (path: unknown) => readFileSync(String(path), 'utf8'),
  write: (path: unknown) => {
    writeFileSync(String(path), 'x');
  },
  shell: () => execFileSync('/bin/true'),
};

export default ({ deed, value }: Input): unknown => deeds[deed](value);
