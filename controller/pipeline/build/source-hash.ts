// Hashes what the image of a component is built from, so that a commit that does not change it takes over the image of the build
// before.
import { createHash, createHmac, type Hash } from 'node:crypto';
import { createReadStream, type Stats } from 'node:fs';
import { lstat, readdir, readFile, readlink } from 'node:fs/promises';
import { join, posix } from 'node:path';
import type { PipelineInput } from '../contract.ts';
import type { PlanNotes } from '../handover.ts';
import { listArguments, parseInstructions } from '../plan/dockerfile/text.ts';
import { commitArguments } from './buildkit.ts';

/** Changes when builds of the same sources give other images, so that all of them are built again. */
const hashVersion = 'v1';

/** What the sources of an image are hashed from. */
export interface HashedSource {
  readonly input: Pick<PipelineInput, 'build' | 'commit'>;
  readonly notes: Pick<PlanNotes, 'authored' | 'context' | 'dockerfile'>;
  /** Commit time in seconds since 1970. */
  readonly time: number;
}

/** Hashes files and folders, each once: components often share one. */
export type HashPath = (path: string) => Promise<string>;

export function createPathHasher(): HashPath {
  const hashes = new Map<string, Promise<string>>();
  return (path) => {
    const known = hashes.get(path) ?? hashPath(path);
    hashes.set(path, known);
    return known;
  };
}

/**
 * Hashes what an image's Dockerfile reads of its build context, the Dockerfile itself with the names of its base images,
 * and everything that it is given. The hash is public and covers values of build arguments, so it depends on a secret of
 * the app, without which nobody can try values.
 */
export async function computeSourceHash(
  { input, notes, time }: HashedSource,
  hash: HashPath,
  secret: string | undefined,
): Promise<string> {
  const { authored, context, dockerfile } = notes;
  const text = await readFile(dockerfile, 'utf8');
  const { args, env, target } = input.build;
  const paths = authored ? await findReadPaths(context, text) : undefined;
  const values = {
    context: await Promise.all((paths ?? ['.']).map(async (path) => [path, await hash(join(context, path))])),
    text,
    ignored: await readFile(`${dockerfile}.dockerignore`, 'utf8').catch(() => ''),
    args,
    ...(authored ? { target, ...listCommitInputs(text, input, time) } : { env }),
  };
  const digest = createHmac('sha256', secret ?? '')
    .update(JSON.stringify(values))
    .digest('base64url');
  return `${hashVersion}:${digest}`;
}

/**
 * Finds the paths of a build context that a Dockerfile reads. A repository often is the context of all of its components,
 * and each copies a folder of it. Undefined if that is not certain, so that the whole context counts.
 */
async function findReadPaths(context: string, text: string): Promise<readonly string[] | undefined> {
  const sources = listReadSources(text);
  if (sources === undefined) return undefined;
  const found = await Promise.all(sources.map((source) => expandSource(context, source)));
  if (found.includes(undefined)) return undefined;
  return [...new Set(['.dockerignore', ...found.flatMap((paths) => paths ?? [])])].sort();
}

/** Lists what COPY and ADD take from the context; undefined if the whole of it may be read, or a variable decides. */
function listReadSources(text: string): readonly string[] | undefined {
  const sources: string[] = [];
  for (const [word, rest] of parseInstructions(text)) {
    const mounts = [...rest.matchAll(/--mount=(\S+)/g)].map(([, options = '']) => options);
    // The type of a mount is bind if it names none.
    if (mounts.some((options) => !/(?:^|,)from=/.test(options) && !/type=(?!bind)/.test(options))) return undefined;
    if (word === 'ONBUILD' || (word === 'FROM' && /onbuild/i.test(rest))) return undefined;
    if ((word !== 'COPY' && word !== 'ADD') || /(?:^|\s)--from=/.test(rest)) continue;
    const list = /^(?:--\S+\s+)*\[(.*)\]\s*$/.exec(rest)?.[1];
    const words =
      list === undefined
        ? rest.split(/\s+/).filter((each) => each !== '' && !each.startsWith('--'))
        : [...list.matchAll(/"([^"]{0,300})"/g)].map(([, each = '']) => each);
    sources.push(...words.slice(0, -1).filter((each) => !/^(?:https?:|git@|git:|<<)/.test(each)));
  }
  const paths = sources.map((each) => posix.normalize(each.replace(/^\/+/, '')).replace(/(?!^)\/$/, ''));
  return paths.some((path) => path === '.' || path.startsWith('..') || /[$\\]/.test(path)) ? undefined : paths;
}

/**
 * Expands a pattern in the last part of a path to all names that begin like it. Undefined for a pattern in another part,
 * and for a link, whose target may be anywhere in the context.
 */
async function expandSource(context: string, source: string): Promise<readonly string[] | undefined> {
  const [folder, name] = [posix.dirname(source), posix.basename(source)];
  if (/[*?[]/.test(folder)) return undefined;
  const parts = source.split('/').map((_, index, all) => all.slice(0, index + 1).join('/'));
  for (const part of /[*?[]/.test(name) ? parts.slice(0, -1) : parts) {
    const stat = await lstat(join(context, part)).catch(() => undefined);
    if (stat?.isSymbolicLink() === true) return undefined;
  }
  if (!/[*?[]/.test(name)) return [source];
  const names = await readdir(join(context, folder)).catch(() => []);
  const [prefix = ''] = name.split(/[*?[]/);
  return names.filter((each) => each.startsWith(prefix)).map((each) => posix.join(folder, each));
}

/** A Dockerfile that declares the commit or its time as an argument makes another image for each commit. */
function listCommitInputs(
  text: string,
  { build: { args }, commit }: HashedSource['input'],
  time: number,
): { commit?: string; time?: number } {
  const given = new Set(args.map(({ name }) => name));
  const declared = listArguments(text);
  const isDeclared = (name: string): boolean => declared.includes(name) && !given.has(name);
  return {
    ...(commitArguments.some(isDeclared) ? { commit } : {}),
    ...(isDeclared('SOURCE_DATE_EPOCH') ? { time } : {}),
  };
}

/** Hashes names, kinds, contents and executable bits: what a checkout of git has. Links are not followed. */
async function hashPath(path: string): Promise<string> {
  const hash = createHash('sha256');
  await addPath(hash, Buffer.from(path), Buffer.alloc(0));
  return hash.digest('base64url');
}

async function addPath(hash: Hash, full: Buffer, inner: Buffer): Promise<void> {
  const stat = await lstat(full).catch(() => undefined);
  const kind = classifyEntry(stat);
  const isFile = kind === 'file' || kind === 'program';
  // Sizes keep two different trees from giving the same bytes.
  hash.update(`${kind} ${inner.length} ${isFile ? (stat?.size ?? 0) : 0} `).update(inner);
  if (isFile) for await (const chunk of createReadStream(full)) hash.update(chunk as Buffer);
  if (kind === 'link') {
    const target = await readlink(full, { encoding: 'buffer' });
    hash.update(`${target.length} `).update(target);
  }
  if (kind !== 'folder') return;
  const names = await readdir(full, { encoding: 'buffer' });
  for (const name of names.toSorted((one, other) => Buffer.compare(one, other))) {
    const slash = Buffer.from('/');
    await addPath(hash, Buffer.concat([full, slash, name]), Buffer.concat([inner, slash, name]));
  }
}

function classifyEntry(stat: Stats | undefined): 'absent' | 'file' | 'program' | 'link' | 'folder' | 'other' {
  if (stat === undefined) return 'absent';
  if (stat.isFile()) return (stat.mode & 0o111) === 0 ? 'file' : 'program';
  if (stat.isSymbolicLink()) return 'link';
  return stat.isDirectory() ? 'folder' : 'other';
}
