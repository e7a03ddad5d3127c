// What an nftables table holds, as data, so that two states can be compared before the kernel is changed.

/** A set, or a map from keys to verdicts. Elements by key; the value is the verdict, empty in a set. */
export interface NftSet {
  /** Such as `ipv4_addr` or, for a map, `ipv4_addr : verdict`. */
  readonly type: string;
  readonly elements: ReadonlyMap<string, string>;
}

/** A chain; `hook` makes it a base chain, such as `type filter hook forward priority 0; policy accept;`. */
export interface NftChain {
  readonly hook?: string | undefined;
  readonly rules: readonly string[];
}

/** A table. */
export interface NftTable {
  readonly family: 'inet' | 'bridge';
  readonly name: string;
  readonly sets: ReadonlyMap<string, NftSet>;
  readonly chains: ReadonlyMap<string, NftChain>;
}

/** A set whose elements have no verdict. */
export function plainSet(type: string, elements: Iterable<string>): NftSet {
  return { type, elements: new Map(Array.from(elements, (element) => [element, ''])) };
}
