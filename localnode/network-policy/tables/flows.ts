// Forgets the kernel's tracked connections of an address that has a new owner, so that its next pod inherits none.
import { execa } from 'execa';

/** Addresses whose owner is another one, or nobody, in the later of two states. Owners by address. */
export function reassigned(before: ReadonlyMap<string, string>, after: ReadonlyMap<string, string>): string[] {
  return [...before].filter(([address, owner]) => after.get(address) !== owner).map(([address]) => address);
}

/** Deletes the tracked connections to and from an address. Rejects when there is no `conntrack` command. */
export async function forgetFlows(address: string): Promise<void> {
  // As client, and as server by its own address or behind a Service's: conntrack answers 1 when there was none.
  for (const side of ['--orig-src', '--reply-src']) {
    const { exitCode, stderr } = await execa('conntrack', ['-D', '-f', 'ipv4', side, address], { reject: false });
    if (exitCode !== 0 && exitCode !== 1) throw new Error(`conntrack -D ${side} ${address}: ${stderr}`);
  }
}
