// A lock between processes: test files that run at once install and compile what they share one after another.
import { once } from 'node:events';
import { spawn } from 'node:child_process';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const lock = join(tmpdir(), 'moorage-test-install.lock');

/** Runs work while no other process of this machine does. It must not be used within itself. The lock dies with us. */
export async function runExclusively<T>(work: () => T | Promise<T>): Promise<T> {
  const holder = spawn('flock', [lock, 'sh', '-c', 'echo; exec cat'], { stdio: ['pipe', 'pipe', 'inherit'] });
  const ended = once(holder, 'exit');
  await Promise.race([
    once(holder.stdout, 'data'),
    ended.then(() => {
      throw new Error(`${lock} could not be locked`);
    }),
  ]);
  try {
    return await work();
  } finally {
    holder.stdin.end();
    await ended;
  }
}
