// Merkle trees as in RFC 6962 (2.1): the root of a list of leaves, and the path by which one leaf leads to it.
import { createHash } from 'node:crypto';

/** Root of a tree without leaves. */
export const emptyRoot = createHash('sha256').digest();

/** Leaves and nodes are hashed apart, so that neither passes for the other. */
export function hashLeaf(text: string): Buffer {
  return createHash('sha256').update('\0').update(text).digest();
}

function hashNode(left: Uint8Array, right: Uint8Array): Buffer {
  return createHash('sha256').update('\u0001').update(left).update(right).digest();
}

/** Root of the tree above some hashes, of leaves or of whole subtrees of one size. */
export function rootOf(hashes: readonly Buffer[]): Buffer {
  const [first] = hashes;
  if (first === undefined) return emptyRoot;
  if (hashes.length === 1) return first;
  const split = splitOf(hashes.length);
  return hashNode(rootOf(hashes.slice(0, split)), rootOf(hashes.slice(split)));
}

/** The hashes beside the way from one of them up to the root, the lowest first. */
export function pathTo(index: number, hashes: readonly Buffer[]): Buffer[] {
  if (hashes.length <= 1) return [];
  const split = splitOf(hashes.length);
  return index < split
    ? [...pathTo(index, hashes.slice(0, split)), rootOf(hashes.slice(split))]
    : [...pathTo(index - split, hashes.slice(split)), rootOf(hashes.slice(0, split))];
}

/** The largest power of two below a number of at least 2. */
function splitOf(size: number): number {
  return 2 ** (31 - Math.clz32(size - 1));
}

/** The root that a leaf leads to by its path (RFC 9162, 2.1.3.2); undefined where the path does not fit the tree. */
export function rootFrom(hash: Buffer, index: number, size: number, path: readonly Buffer[]): Buffer | undefined {
  return index >= 0 && index < size && size <= 2 ** 31 ? climb(hash, index, size, path) : undefined;
}

function climb(hash: Buffer, index: number, size: number, path: readonly Buffer[]): Buffer | undefined {
  if (size === 1) return path.length === 0 ? hash : undefined;
  const beside = path.at(-1);
  if (beside === undefined) return undefined;
  const split = splitOf(size);
  const below = path.slice(0, -1);
  if (index < split) {
    const left = climb(hash, index, split, below);
    return left && hashNode(left, beside);
  }
  const right = climb(hash, index - split, size - split, below);
  return right && hashNode(beside, right);
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
      this.#tiles.push(rootOf(this.#leaves));
      this.#leaves = [];
    }
  }

  /** Roots of all tiles; the last one may have fewer leaves. */
  tiles(): Buffer[] {
    return this.#leaves.length === 0 ? this.#tiles : [...this.#tiles, rootOf(this.#leaves)];
  }
}
