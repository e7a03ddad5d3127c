// Represents nftables tables as data, and converts a table, or the difference between two states of one, to a script
// that nft applies in one transaction.

/** Replaces the table. Packets are matched against the old rules or the new ones, never none. */
export function replaceScript(table: NftTable): string {
  const { family, name } = table;
  const empty: NftTable = { family, name, sets: new Map(), chains: new Map() };
  return [
    `add table ${family} ${name}`,
    `delete table ${family} ${name}`,
    `add table ${family} ${name}`,
    renderChangeScript(empty, table),
  ].join('\n');
}

/** Removes a table if it exists. */
export function removeScript({ family, name }: Pick<NftTable, 'family' | 'name'>): string {
  return `add table ${family} ${name}\ndelete table ${family} ${name}\n`;
}

/**
 * Renders the commands from one state to the next; empty if they are the same. Sets with the same name have the same
 * type.
 */
export function renderChangeScript(from: NftTable, to: NftTable): string {
  const at = `${to.family} ${to.name}`;
  const changed = [...to.chains].filter(([name, chain]) => !hasSameRules(from.chains.get(name), chain));
  const removed = listMissing(from.chains, to.chains);
  // Objects that refer to another one are deleted before it and added after it.
  const lines = [
    ...listMissing(to.chains, from.chains).map((name) => formatChain(at, name, to.chains.get(name))),
    ...[...changed.map(([name]) => name).filter((name) => from.chains.has(name)), ...removed].map(
      (name) => `flush chain ${at} ${name}`,
    ),
    ...listMissing(to.sets, from.sets).map((name) => setLine(at, name, to.sets.get(name))),
    ...changed.flatMap(([name, chain]) => chain.rules.map((rule) => `add rule ${at} ${name} ${rule}`)),
    ...[...to.sets].flatMap(([name, set]) => formatElementChanges(at, name, from.sets.get(name), set)),
    ...listMissing(from.sets, to.sets).map((name) => `delete ${getSetKind(from.sets.get(name))} ${at} ${name}`),
    ...removed.map((name) => `delete chain ${at} ${name}`),
  ];
  return lines.map((line) => `${line}\n`).join('');
}

function listMissing(expected: ReadonlyMap<string, unknown>, present: ReadonlyMap<string, unknown>): string[] {
  return [...expected.keys()].filter((name) => !present.has(name));
}

function hasSameRules(a: NftChain | undefined, b: NftChain): boolean {
  return (a?.rules ?? []).join('\n') === b.rules.join('\n');
}

function getSetKind(set: NftSet | undefined): 'set' | 'map' {
  return set?.type.includes(' : ') === true ? 'map' : 'set';
}

function formatChain(at: string, name: string, chain: NftChain | undefined): string {
  return `add chain ${at} ${name}${chain?.hook === undefined ? '' : ` { ${chain.hook} }`}`;
}

function setLine(at: string, name: string, set: NftSet | undefined): string {
  return `add ${getSetKind(set)} ${at} ${name} { type ${set?.type ?? ''}; }`;
}

function formatElementChanges(at: string, name: string, previousSet: NftSet | undefined, nextSet: NftSet): string[] {
  const old = previousSet?.elements ?? new Map<string, string>();
  const removed = [...old].filter(([key, verdict]) => nextSet.elements.get(key) !== verdict);
  const added = [...nextSet.elements].filter(([key, verdict]) => old.get(key) !== verdict);
  return [...formatElements('delete', at, name, removed), ...formatElements('add', at, name, added)];
}

function formatElements(
  verb: 'add' | 'delete',
  at: string,
  name: string,
  elements: readonly (readonly [string, string])[],
): string[] {
  if (elements.length === 0) return [];
  const texts = elements.map(([key, verdict]) => (verdict === '' ? key : `${key} : ${verdict}`));
  return [`${verb} element ${at} ${name} { ${texts.join(', ')} }`];
}

/** A set, or a map from keys to verdicts. Elements by key; the value is the verdict, empty in a set. */
export interface NftSet {
  /** For example `ipv4_addr` or, for a map, `ipv4_addr : verdict`. */
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

/** Creates a set whose elements have no verdict. */
export function createPlainSet(type: string, elements: Iterable<string>): NftSet {
  return { type, elements: new Map(Array.from(elements, (element) => [element, ''])) };
}

/** The bridge whose ports belong to the pods. */
export interface Scope {
  /** Name of both tables (families inet and bridge). */
  table: string;
  /** Name of the bridge. */
  bridge: string;
  /** CIDR of the pods' addresses. */
  podCidr: string;
}

/** Name of the tables on a node. */
export const TABLE = 'moorage-policy';

/**
 * Marks a packet that the policy table has evaluated: a frame bridged to a pod without this mark bypassed the rules.
 */
export const SEEN = '0x10000000';

/** Marks a packet whose source address is the one assigned to its bridge port. */
export const SOURCE_PROVED = '0x20000000';
