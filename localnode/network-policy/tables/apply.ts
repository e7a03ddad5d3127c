// Applies tables to the kernel, each change as one transaction, and removes them.
import { execa } from 'execa';
import { TABLE } from './scope.ts';
import { changeScript, removeScript, replaceScript } from './script.ts';
import type { NftTable } from './tables.ts';

/**
 * Runs one nft script as a transaction. Rejects with nft's own message when the kernel refuses it; nothing is
 * changed then.
 */
export type RunNft = (script: string) => Promise<void>;

/** Runs scripts by a command that reads them from standard input; default `nft -f -`. */
export function nftRunner(command: readonly [string, ...string[]] = ['nft', '-f', '-']): RunNft {
  const [file, ...args] = command;
  return async (script) => {
    await execa(file, args, { input: script });
  };
}

/** Keeps the kernel's tables in a desired state. Calls must not overlap. */
export interface Applier {
  /**
   * Applies the difference to what was applied last, or all of it the first time, after `distrust` and when the
   * difference is refused. True when there was a difference.
   */
  apply(tables: readonly NftTable[]): Promise<boolean>;
  /** Makes the next `apply` replace everything, whatever state the kernel is in. */
  distrust(): void;
}

/** Makes an applier. All tables of one call change in one transaction. */
export function createApplier(run: RunNft): Applier {
  let applied: readonly NftTable[] = [];
  let trusted = false;
  const applyDifference = async (difference: string, tables: readonly NftTable[]): Promise<void> => {
    try {
      await run(difference);
    } catch {
      // Someone else has changed our tables, so that the difference does not fit: the whole state always does.
      await run(tables.map(replaceScript).join(''));
    }
  };
  return {
    async apply(tables) {
      const first = applied.length !== tables.length;
      const difference = first
        ? ''
        : tables.map((table, index) => changeScript(applied[index] ?? table, table)).join('');
      const whole = first || !trusted;
      trusted = false;
      if (whole) await run(tables.map(replaceScript).join(''));
      else if (difference !== '') await applyDifference(difference, tables);
      applied = tables;
      trusted = true;
      return first || difference !== '';
    },
    distrust() {
      trusted = false;
    },
  };
}

/** True when the policy table is in the kernel, such as after a restart of the enforcer. */
export async function tableExists(): Promise<boolean> {
  const { exitCode } = await execa('nft', ['list', 'chain', 'inet', TABLE, 'forward'], { reject: false });
  return exitCode === 0;
}

/** Removes both tables from the kernel, after which nothing is enforced. Does nothing when there are none. */
export async function removeTable(run: RunNft = nftRunner()): Promise<void> {
  await run(removeScript({ family: 'inet', name: TABLE }) + removeScript({ family: 'bridge', name: TABLE }));
}
