// Indexes the author's files without following symbolic links, and reads them with size limits.
import {
  closeSync,
  constants,
  type Stats,
  fstatSync,
  lstatSync,
  openSync,
  readdirSync,
  readlinkSync,
  readSync,
} from 'node:fs';
import { join } from 'node:path';
import type { PackageRegistry } from '../../lib/repository.ts';

export interface TreeEntry {
  /** Relative, with "/". Names that are not UTF-8 contain replacement characters. */
  readonly path: string;
  readonly kind: 'file' | 'directory' | 'symlink' | 'other';
  readonly bytes: number;
  /** Target of a symbolic link, as written. */
  readonly target?: string;
  /** The name is not valid UTF-8, so no tool can find the file by the name shown. */
  readonly unreadableName?: boolean;
}

export interface Tree {
  /** Sorted by path. */
  readonly entries: readonly TreeEntry[];
  /** Day of the commit: a clone sets the times of all files to it. Undefined if unknown. */
  readonly date?: Date | undefined;
  /** Registry that the files were published in, as those of a built package; absent: they are a repository's. */
  readonly registry?: PackageRegistry | undefined;
  getEntry(path: string): TreeEntry | undefined;
  /** Returns whether there is a regular file at that path. */
  has(path: string): boolean;
  /** Returns the first `bytes` (default 1 MiB) of a regular file as text; undefined if there is none. */
  readFile(path: string, bytes?: number): string | undefined;
  /** Returns the tree of a folder, with paths relative to it. "." is the tree itself. */
  getSubtree(folder: string): Tree;
}

type Reader = (path: string, bytes: number) => string;
const defaultReadBytes = 1024 * 1024;

/** Where the files of a tree come from. */
export interface TreeOrigin extends Pick<Tree, 'registry'> {
  /** Day of the commit, where the times of the files do not show it. */
  readonly date?: Date | undefined;
}

class IndexedTree implements Tree {
  readonly entries: readonly TreeEntry[];
  readonly date: Date | undefined;
  readonly registry: PackageRegistry | undefined;
  readonly #byPath: ReadonlyMap<string, TreeEntry>;
  readonly #read: Reader;

  constructor(entries: readonly TreeEntry[], read: Reader, { date, registry }: TreeOrigin) {
    this.date = date;
    this.registry = registry;
    this.entries = entries.toSorted((one, other) => (one.path < other.path ? -1 : 1));
    this.#byPath = new Map(this.entries.map((each) => [each.path, each]));
    this.#read = read;
  }

  getEntry(path: string): TreeEntry | undefined {
    return this.#byPath.get(path);
  }

  has(path: string): boolean {
    return this.#byPath.get(path)?.kind === 'file';
  }

  readFile(path: string, bytes = defaultReadBytes): string | undefined {
    const entry = this.#byPath.get(path);
    return entry?.kind === 'file' && entry.unreadableName !== true ? this.#read(path, bytes) : undefined;
  }

  getSubtree(folder: string): Tree {
    if (folder === '.') return this;
    const prefix = `${folder}/`;
    const entries = this.entries
      .filter((each) => each.path.startsWith(prefix))
      .map((each) => ({ ...each, path: each.path.slice(prefix.length) }));
    return new IndexedTree(entries, (path, bytes) => this.#read(`${prefix}${path}`, bytes), {
      date: this.date,
    });
  }
}

/**
 * Indexes a folder on disk. @param skipped names of files and folders to skip at every level
 */
export function readDiskTree(
  root: string,
  { skipped = new Set(), date, registry }: TreeOrigin & { readonly skipped?: ReadonlySet<string> } = {},
): Tree {
  let newest = 0;
  const entries: TreeEntry[] = [];
  const folders: { path: string; raw: Buffer }[] = [{ path: '', raw: Buffer.from(root) }];
  for (let folder = folders.pop(); folder !== undefined; folder = folders.pop()) {
    for (const name of readdirSync(folder.raw, { encoding: 'buffer' })) {
      if (skipped.has(name.toString('utf8'))) continue;
      const raw = Buffer.concat([folder.raw, Buffer.from('/'), name]);
      const path = folder.path === '' ? name.toString('utf8') : `${folder.path}/${name.toString('utf8')}`;
      const stat = lstatSync(raw);
      const entry = describe(raw, path, name, stat);
      entries.push(entry);
      if (entry.kind === 'file') newest = Math.max(newest, stat.mtimeMs);
      if (entry.kind === 'directory') folders.push({ path: entry.path, raw });
    }
  }
  const committed = newest > firstPossible ? new Date(newest) : undefined;
  return new IndexedTree(entries, (path, bytes) => readBounded(join(root, path), bytes), {
    date: date ?? committed,
    registry,
  });
}

/** Files of a folder without a commit have a time in the year 2000. */
const firstPossible = Date.UTC(2005, 0, 1);

/** Creates a tree in memory: contents by path; `{ linkTo }` is a symbolic link. */
export function createMemoryTree(
  files: Readonly<Record<string, string | { readonly linkTo: string }>>,
  origin: TreeOrigin = {},
): Tree {
  const contents = new Map(Object.entries(files));
  const folders = new Set([...contents.keys()].flatMap(listParents).filter((folder) => !contents.has(folder)));
  const entries = [
    ...[...folders].map((path): TreeEntry => ({ path, kind: 'directory', bytes: 0 })),
    ...[...contents].map(([path, content]): TreeEntry =>
      typeof content === 'string'
        ? { path, kind: 'file', bytes: Buffer.byteLength(content) }
        : { path, kind: 'symlink', bytes: 0, target: content.linkTo },
    ),
  ];
  const read = (path: string, bytes: number): string => {
    const content = contents.get(path);
    return typeof content === 'string' ? Buffer.from(content).subarray(0, bytes).toString('utf8') : '';
  };
  return new IndexedTree(entries, read, origin);
}

function listParents(path: string): string[] {
  const parts = path.split('/').slice(0, -1);
  return parts.map((_, index) => parts.slice(0, index + 1).join('/'));
}

function describe(raw: Buffer, path: string, name: Buffer, stat: Stats): TreeEntry {
  const odd = name.equals(Buffer.from(name.toString('utf8'))) ? {} : { unreadableName: true };
  if (stat.isSymbolicLink())
    return { path, kind: 'symlink', bytes: stat.size, target: readlinkSync(raw, 'utf8'), ...odd };
  if (stat.isDirectory()) return { path, kind: 'directory', bytes: 0, ...odd };
  return { path, kind: stat.isFile() ? 'file' : 'other', bytes: stat.size, ...odd };
}

/** Reads the first `bytes` of a regular file in a folder, without indexing the tree. */
export function readFileText(root: string, name: string, bytes: number): string | undefined {
  const path = join(root, name);
  return lstatSync(path, { throwIfNoEntry: false })?.isFile() === true ? readBounded(path, bytes) : undefined;
}

function readBounded(path: string, bytes: number): string {
  const descriptor = openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  try {
    const buffer = Buffer.alloc(Math.min(bytes, fstatSync(descriptor).size));
    let filled = 0;
    while (filled < buffer.length) {
      const read = readSync(descriptor, buffer, filled, buffer.length - filled, filled);
      if (read === 0) break;
      filled += read;
    }
    return buffer.toString('utf8', 0, filled);
  } finally {
    closeSync(descriptor);
  }
}
