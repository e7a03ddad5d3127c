// A file with what is enforced and what is refused, for `status` and for finding the cause of a denial.
import { mkdir, rename, writeFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import type { RefusedPolicy } from './state.ts';

/** What the file holds. */
export interface EnforcerStatus {
  /**
   * `closed`: nothing flows yet, since the API server has not answered; `enforcing`: the rules are those of the policies.
   */
  state: 'closed' | 'enforcing';
  /** RFC 3339. */
  appliedAt: string;
  /** Milliseconds that the last change took, from reading the sources to having it in the kernel. */
  lastChangeMs: number;
  pods: number;
  policies: number;
  /** Whether sources are proved by the bridge's table. */
  sourceGuard: boolean;
  refused: readonly RefusedPolicy[];
  contestedAddresses: readonly string[];
  unreadableCniRecords: readonly string[];
}

/** Replaces the file in one step. */
export async function writeStatus(path: string, status: EnforcerStatus): Promise<void> {
  await mkdir(dirname(path), { recursive: true });
  const draft = `${path}.new`;
  await writeFile(draft, `${JSON.stringify(status, null, 2)}\n`);
  await rename(draft, path);
}
