// Lets one `up` or `down` run at a time. A lock whose holder has died is taken over.
import { link, mkdir, rm, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { readText } from '../localnode/files.ts';
import { parseStartTime } from '../localnode/node/daemons/processes.ts';

/** Held by `up`, by `down` and while an image is made. Outside the folders that `down` removes. */
export const lock = '/run/lock/moorage.lock';

/** Identifies a process by its ID and, where there is a /proc, its start time; undefined if it is not alive. */
async function identifyProcess(pid: number): Promise<string | undefined> {
  const line = await readText(`/proc/${pid}/stat`);
  if (line !== undefined) return `${pid} ${parseStartTime(line) ?? ''}`;
  if (process.platform === 'linux' || !Number.isInteger(pid)) return undefined;
  try {
    process.kill(pid, 0);
    return String(pid);
  } catch {
    return undefined;
  }
}

/** A live process holds the lock. */
class LockedError extends Error {}

/** Waits until the lock is free, and does the same. */
export async function waitForLock<T>(path: string, body: () => Promise<T>): Promise<T> {
  for (;;) {
    try {
      return await runWithLock(path, body);
    } catch (error) {
      if (!(error instanceof LockedError)) throw error;
      await sleep(1_000);
    }
  }
}

/** Takes the lock, runs `body`, and releases the lock. Throws immediately if a live process holds it. */
export async function runWithLock<T>(path: string, body: () => Promise<T>): Promise<T> {
  await mkdir(dirname(path), { recursive: true });
  const processId = (await identifyProcess(process.pid)) ?? String(process.pid);
  const draft = join(dirname(path), `lock.${process.pid}`);
  await writeFile(draft, processId);
  try {
    for (;;) {
      // A link is created atomically, so the lock never exists without the name of its holder.
      if (
        await link(draft, path).then(
          () => true,
          () => false,
        )
      )
        break;
      const holder = await readText(path);
      const pid = Number.parseInt(holder ?? '', 10);
      if (holder !== undefined && (await identifyProcess(pid)) === holder)
        throw new LockedError(`another \`up\` or \`down\` is in progress (process ${pid}): wait until it ends`);
      await rm(path, { force: true });
    }
    try {
      return await body();
    } finally {
      await rm(path, { force: true });
    }
  } finally {
    await rm(draft, { force: true });
  }
}
