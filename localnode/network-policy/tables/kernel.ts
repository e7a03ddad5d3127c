// The kernel switches without which bridged packets would not be shown to the policy table.
import { writeFile } from 'node:fs/promises';

/** Shows bridged IPv4 and IPv6 to the inet family's hooks. Rejects when the kernel lacks br_netfilter. */
export async function showBridgedPackets(): Promise<void> {
  for (const name of ['bridge-nf-call-iptables', 'bridge-nf-call-ip6tables']) {
    await writeFile(`/proc/sys/net/bridge/${name}`, '1').catch((cause: unknown) => {
      throw new Error(`net.bridge.${name} cannot be set: load br_netfilter (modprobe br_netfilter)`, { cause });
    });
  }
}
