// Asks DNS alone for the addresses of a name: no hosts file, no search domains, and no thread that a slow server could
// hold.
import { Resolver } from 'node:dns/promises';
import { isIPv6 } from 'node:net';
import type { LookupAddress } from 'node:dns';

/** All addresses of a name. @throws Error (ENOTFOUND) when there are none */
export type Resolve = (hostname: string) => Promise<string[]>;

/** Resolves by the servers that this machine is set to. */
export function dnsResolver(): Resolve {
  const resolver = new Resolver({ timeout: 2_500, tries: 2 });
  return async (hostname) => {
    const answers = await Promise.allSettled([resolver.resolve4(hostname), resolver.resolve6(hostname)]);
    const addresses = answers.flatMap((answer) => (answer.status === 'fulfilled' ? answer.value : []));
    if (addresses.length === 0)
      throw answers.find((answer) => answer.status === 'rejected')?.reason ?? new Error(`no address for ${hostname}`);
    return addresses;
  };
}

export function lookupAddress(address: string): LookupAddress {
  return { address, family: isIPv6(address) ? 6 : 4 };
}
