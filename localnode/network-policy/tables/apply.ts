// Applies tables to the kernel, each change as one transaction, removes them, forgets connections of reassigned addresses,
// and sets the kernel switches that show bridged packets to the policy table.
import { writeFile } from 'node:fs/promises';
import { execa } from 'execa';
import { TABLE, renderChangeScript, removeScript, replaceScript, type NftTable } from './script.ts';

/**
 * Runs an nft script as one transaction. Rejects with nft's own message if the kernel rejects it; then nothing has
 * changed.
 */
export type RunNft = (script: string) => Promise<void>;

/** Creates a runner for a command that reads scripts from standard input; default `nft -f -`. */
export function createNftRunner(command: readonly [string, ...string[]] = ['nft', '-f', '-']): RunNft {
  const [file, ...args] = command;
  return async (script) => {
    await execa(file, args, { input: script });
  };
}

/** Keeps the kernel's tables in a desired state. Calls must not overlap. */
export interface Applier {
  /**
   * Applies the difference to the last applied state. Applies everything the first time, after `invalidate`, and if the
   * difference is rejected. Returns true if there was a difference.
   */
  apply(tables: readonly NftTable[]): Promise<boolean>;
  /** Makes the next `apply` replace everything, whatever the kernel's state. */
  invalidate(): void;
}

/** Creates an applier. All tables of a call change in one transaction. */
export function createApplier(run: RunNft): Applier {
  let applied: readonly NftTable[] = [];
  let trusted = false;
  const applyDifference = async (difference: string, tables: readonly NftTable[]): Promise<void> => {
    try {
      await run(difference);
    } catch {
      // Another program changed our tables, so the difference does not apply. Replacing everything always works.
      await run(tables.map(replaceScript).join(''));
    }
  };
  return {
    async apply(tables) {
      const first = applied.length !== tables.length;
      const difference = first
        ? ''
        : tables.map((table, index) => renderChangeScript(applied[index] ?? table, table)).join('');
      const isFullReload = first || !trusted;
      trusted = false;
      if (isFullReload) await run(tables.map(replaceScript).join(''));
      else if (difference !== '') await applyDifference(difference, tables);
      applied = tables;
      trusted = true;
      return first || difference !== '';
    },
    invalidate() {
      trusted = false;
    },
  };
}

/** Returns true if the policy table is in the kernel, for example after a restart of the enforcer. */
export async function hasTable(): Promise<boolean> {
  const { exitCode } = await execa('nft', ['list', 'chain', 'inet', TABLE, 'forward'], { reject: false });
  return exitCode === 0;
}

/** Removes both tables from the kernel if they exist; then nothing is enforced. */
export async function removeTable(run: RunNft = createNftRunner()): Promise<void> {
  await run(removeScript({ family: 'inet', name: TABLE }) + removeScript({ family: 'bridge', name: TABLE }));
}

/** Lists addresses whose owner changed or disappeared between two states. Owners by address. */
export function findReassigned(
  previousOwners: ReadonlyMap<string, string>,
  owners: ReadonlyMap<string, string>,
): string[] {
  return [...previousOwners].filter(([address, owner]) => owners.get(address) !== owner).map(([address]) => address);
}

/**
 * Deletes tracked connections of an address that has a new owner, so that its next pod inherits none. Rejects if there
 * is no `conntrack` command.
 */
export async function forgetFlows(address: string): Promise<void> {
  // As a client, and as a server with its own address or behind a Service. conntrack exits with 1 if there are none.
  for (const side of ['--orig-src', '--reply-src']) {
    const { exitCode, stderr } = await execa('conntrack', ['-D', '-f', 'ipv4', side, address], { reject: false });
    if (exitCode !== 0 && exitCode !== 1) throw new Error(`conntrack -D ${side} ${address}: ${stderr}`);
  }
}

/** Passes bridged IPv4 and IPv6 packets to the inet family's hooks. Rejects if the kernel lacks br_netfilter. */
export async function showBridgedPackets(): Promise<void> {
  for (const name of ['bridge-nf-call-iptables', 'bridge-nf-call-ip6tables']) {
    await writeFile(`/proc/sys/net/bridge/${name}`, '1').catch((cause: unknown) => {
      throw new Error(`net.bridge.${name} cannot be set: load br_netfilter (modprobe br_netfilter)`, { cause });
    });
  }
}
