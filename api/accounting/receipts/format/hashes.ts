// Hashes documents and transactions: canonical JSON (RFC 8785), the chain of a day, and Merkle trees (RFC 6962).
import { createHash } from 'node:crypto';
import canonicalize from 'canonicalize';

/** @throws Error for what JSON cannot say, and for text that is not Unicode */
export function toCanonicalJson(value: unknown): string {
  const text = canonicalize(value);
  if (text === undefined) throw new TypeError('this value has no JSON form');
  return text;
}

/** SHA-256 of the canonical text, in hex. */
export function computeDigest(value: unknown): string {
  return createHash('sha256').update(toCanonicalJson(value)).digest('hex');
}

/**
 * Parses JSON. Of a member that appears twice, some parsers keep the first and some the last, so a signature of one
 * reading would vouch for the other. @throws SyntaxError for text that is not JSON, and for a member that appears twice
 */
export function parseJson(text: string): unknown {
  const value: unknown = JSON.parse(text);
  const name = findRepeatedMember(text);
  if (name !== undefined) throw new SyntaxError(`the member ${JSON.stringify(name)} is there twice`);
  return value;
}

/** Strings and punctuation; what lies between them has no names. */
const token = /"[^"\\]*(?:\\.[^"\\]*)*"|[{}[\],:]/g;

/** An object or list that is open where the text is read. */
interface Level {
  /** Of an object: the names that it has so far. */
  readonly names: Set<string> | undefined;
  /** Whether the next string is a name. */
  atName: boolean;
}

/** `text` is valid JSON, so a string in an object is a name unless a colon precedes it. */
function findRepeatedMember(text: string): string | undefined {
  const levels: Level[] = [];
  for (const [symbol] of text.matchAll(token)) {
    const level = levels.at(-1);
    if (symbol === '{') levels.push({ names: new Set(), atName: true });
    else if (symbol === '[') levels.push({ names: undefined, atName: false });
    else if (symbol === '}' || symbol === ']') levels.pop();
    else if (level?.names !== undefined && !addName(level, level.names, symbol)) return JSON.parse(symbol) as string;
  }
  return undefined;
}

/** @returns false for a name that the object has already */
function addName(level: Level, names: Set<string>, symbol: string): boolean {
  if (symbol === ',' || symbol === ':') {
    level.atName = symbol === ',';
    return true;
  }
  if (!level.atName) return true;
  // Decoded, since "a" and "\u0061" are the same name.
  const name = JSON.parse(symbol) as string;
  return !names.has(name) && names.add(name) === names;
}

/** What the chain of a day begins with. `day`: like 2026-11-23. */
export function startChain(day: string): Buffer {
  return createHash('sha256').update(day).digest();
}

export function extendChain(previous: Uint8Array, leafHash: Uint8Array): Buffer {
  return createHash('sha256').update(previous).update(leafHash).digest();
}

/** Days are chained too: each names the digest of the one before. */
export function getNextDay(day: string): string {
  return new Date(Date.parse(day) + 86_400_000).toISOString().slice(0, 10);
}

/** Root of a tree without leaves. */
export const emptyRoot = createHash('sha256').digest();

/** Leaves and nodes are hashed apart, so that neither passes for the other. */
export function hashLeafText(text: string): Buffer {
  return createHash('sha256').update('\0').update(text).digest();
}

function hashNode(left: Uint8Array, right: Uint8Array): Buffer {
  return createHash('sha256').update('\u0001').update(left).update(right).digest();
}

/** Root of the tree above some hashes, of leaves or of whole subtrees of one size. */
export function computeRoot(hashes: readonly Buffer[]): Buffer {
  const [first] = hashes;
  if (first === undefined) return emptyRoot;
  if (hashes.length === 1) return first;
  const split = findSplit(hashes.length);
  return hashNode(computeRoot(hashes.slice(0, split)), computeRoot(hashes.slice(split)));
}

/** The sibling hashes on the path from a leaf to the root, the lowest first. */
export function computePath(index: number, hashes: readonly Buffer[]): Buffer[] {
  if (hashes.length <= 1) return [];
  const split = findSplit(hashes.length);
  return index < split
    ? [...computePath(index, hashes.slice(0, split)), computeRoot(hashes.slice(split))]
    : [...computePath(index - split, hashes.slice(split)), computeRoot(hashes.slice(0, split))];
}

/** The largest power of two below a number of at least 2. */
function findSplit(size: number): number {
  return 2 ** (31 - Math.clz32(size - 1));
}

/** The root that a leaf leads to by its path (RFC 9162, 2.1.3.2); undefined where the path does not fit the tree. */
export function computeRootFromPath(
  hash: Buffer,
  index: number,
  size: number,
  path: readonly Buffer[],
): Buffer | undefined {
  return index >= 0 && index < size && size <= 2 ** 31 ? climb(hash, index, size, path) : undefined;
}

function climb(hash: Buffer, index: number, size: number, path: readonly Buffer[]): Buffer | undefined {
  if (size === 1) return path.length === 0 ? hash : undefined;
  const sibling = path.at(-1);
  if (sibling === undefined) return undefined;
  const split = findSplit(size);
  const lowerPath = path.slice(0, -1);
  if (index < split) {
    const left = climb(hash, index, split, lowerPath);
    return left && hashNode(left, sibling);
  }
  const right = climb(hash, index - split, size - split, lowerPath);
  return right && hashNode(sibling, right);
}

/** Leaves below one tile. Its root stands for it, so that a path needs the leaves of one tile and not of the whole day. */
export const tileSize = 256;

/** Takes leaves one by one, in bounded memory but for the roots of full tiles. */
export class TreeBuilder {
  readonly #tiles: Buffer[] = [];
  #leaves: Buffer[] = [];

  add(hash: Buffer): void {
    this.#leaves.push(hash);
    if (this.#leaves.length === tileSize) {
      this.#tiles.push(computeRoot(this.#leaves));
      this.#leaves = [];
    }
  }

  /** Roots of all tiles; the last one may have fewer leaves. */
  computeTiles(): Buffer[] {
    return this.#leaves.length === 0 ? this.#tiles : [...this.#tiles, computeRoot(this.#leaves)];
  }
}
