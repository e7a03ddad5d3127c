// What all worker processes share: memory, how much there is and what each has of it, and processors, how long each has
// waited for one. Whatever ends a container for its memory ends all of its processes.
import { readdirSync, readFileSync } from 'node:fs';

const mb = 1_048_576;
/** Left for the API's own process, where it starts the workers itself. */
const apiMb = 512;
const leastMb = 256;
/** Where nothing limits this process. */
const usualMb = 1_024;

export interface MemoryBudgetOptions {
  /** Left for the process that starts the workers; default what the API needs. */
  readonly ownMb?: number;
  /** Limit of the container, in bytes. */
  readonly constrained?: number;
}

/** What the limit of the container leaves, in MB. */
export function memoryBudgetMb({
  ownMb = apiMb,
  constrained = process.constrainedMemory(),
}: MemoryBudgetOptions = {}): number {
  // Without a limit the system reports a number that no machine has.
  if (constrained === 0 || constrained > 2 ** 50) return usualMb;
  return Math.max(leastMb, Math.floor(constrained / mb) - ownMb);
}

/**
 * What a process and those that it has started have for themselves alone, in MB: not the program's pages, which all
 * share. 0 for one that is gone, or where this is not Linux.
 */
export function ownMemoryMb(pid: number | undefined): number {
  try {
    const status = readFileSync(`/proc/${pid ?? 0}/status`, 'utf8');
    const own = Number(/^RssAnon:\s+(\d+) kB/m.exec(status)?.[1] ?? 0) / 1_024;
    return own + childrenOf(pid ?? 0).reduce((sum, child) => sum + ownMemoryMb(child), 0);
  } catch {
    return 0;
  }
}

/**
 * How long the main thread of a process has waited for a processor, in ms, since it started. 0 for one that is gone, or
 * where this is not Linux.
 */
export function cpuWaitMs(pid: number | undefined): number {
  try {
    const [, waited = '0'] = readFileSync(`/proc/${pid ?? 0}/schedstat`, 'utf8').split(' ');
    return Number(waited) / 1e6;
  } catch {
    return 0;
  }
}

/** Each thread has those that it has started. */
function childrenOf(pid: number): number[] {
  try {
    return readdirSync(`/proc/${pid}/task`)
      .flatMap((thread) => readFileSync(`/proc/${pid}/task/${thread}/children`, 'utf8').split(' '))
      .filter(Boolean)
      .map(Number);
  } catch {
    return [];
  }
}
