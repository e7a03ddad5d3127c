// `node test/cached-checks.ts format | types`: checks the format or the types of the whole tree, as Prettier and the
// compiler do, but only does again what can differ from the last time. What it knows of the last time is outside the tree,
// so that a new clone starts with it. The types of one file depend on others: the compiler itself decides what to check.
import { createHash } from 'node:crypto';
import { copyFileSync, existsSync, mkdirSync, readdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { execa } from 'execa';
import { check, clearConfigCache, getFileInfo, resolveConfig, version } from 'prettier';
import { z } from 'zod';
import { paths } from '../localnode/paths.ts';

export interface FormatCheck {
  readonly root: string;
  /** File with the fingerprints of formatted files. */
  readonly cache: string;
}

export interface FormatResult {
  /** Each with what is wrong with it. */
  readonly unformatted: readonly string[];
  /** How many files were not known. */
  readonly checked: number;
}

const fingerprints = z.array(z.string());
/** Folders that Prettier never enters, and which hold most files. */
const skipped = new Set(['node_modules', '.git', '.moorage', 'coverage']);

/** A file is known by its path, content and options, and by the version of Prettier. */
export async function checkFormat({ root, cache }: FormatCheck): Promise<FormatResult> {
  await clearConfigCache();
  const known = readFingerprints(cache);
  const current: string[] = [];
  const unformatted: string[] = [];
  let checked = 0;
  for (const file of listFiles(root)) {
    const path = join(root, file);
    const ignorePath = ['.gitignore', '.prettierignore'].map((name) => join(root, name));
    const { ignored, inferredParser } = await getFileInfo(path, { ignorePath });
    if (ignored || inferredParser === null) continue;
    const options = await resolveConfig(path, { editorconfig: true });
    const text = readFileSync(path, 'utf8');
    const fingerprint = createHash('sha256')
      .update(JSON.stringify([version, file, options, text]))
      .digest('base64url');
    if (!known.has(fingerprint)) {
      checked += 1;
      const fault = await findFault(text, { ...options, filepath: path });
      if (fault !== undefined) {
        unformatted.push(`${file}: ${fault}`);
        continue;
      }
    }
    current.push(fingerprint);
  }
  replaceFile(cache, (draft) => {
    writeFileSync(draft, JSON.stringify(current));
  });
  return { unformatted, checked };
}

function listFiles(root: string, folder = ''): string[] {
  return readdirSync(join(root, folder), { withFileTypes: true }).flatMap((entry) => {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) return skipped.has(entry.name) ? [] : listFiles(root, path);
    return entry.isFile() ? [path] : [];
  });
}

async function findFault(text: string, options: Parameters<typeof check>[1]): Promise<string | undefined> {
  try {
    return (await check(text, options)) ? undefined : 'not formatted; run npm run format';
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}

/** Without a readable file, nothing is known. */
function readFingerprints(cache: string): ReadonlySet<string> {
  try {
    return new Set(fingerprints.parse(JSON.parse(readFileSync(cache, 'utf8'))));
  } catch {
    return new Set();
  }
}

/** Runs of several checkouts may write at the same time. */
function replaceFile(path: string, write: (draft: string) => void): void {
  const draft = `${path}.${process.pid}`;
  mkdirSync(dirname(path), { recursive: true });
  write(draft);
  renameSync(draft, path);
}

/** The paths in the compiler's record are relative to the record, so it works in any clone, at the same place. */
async function checkTypes(root: string, cache: string): Promise<number> {
  const record = join(root, 'node_modules/.cache/types');
  if (!existsSync(record) && existsSync(cache))
    replaceFile(record, (draft) => {
      copyFileSync(cache, draft);
    });
  const { exitCode } = await execa('tsc', ['--noEmit', '--incremental', '--tsBuildInfoFile', record], {
    cwd: root,
    reject: false,
    stdio: 'inherit',
  });
  if (existsSync(record))
    replaceFile(cache, (draft) => {
      copyFileSync(record, draft);
    });
  return exitCode ?? 1;
}

if (import.meta.main) {
  const root = join(import.meta.dirname, '..');
  const folder = join(paths.cache, 'checks');
  const [, , what] = process.argv;
  if (what === 'types') process.exitCode = await checkTypes(root, join(folder, 'types'));
  else if (what === 'format') {
    const { unformatted } = await checkFormat({ root, cache: join(folder, 'format.json') });
    for (const line of unformatted) process.stdout.write(`${line}\n`);
    process.exitCode = unformatted.length === 0 ? 0 : 1;
  } else throw new Error(`no such check: ${what ?? 'none'}; format or types`);
}
