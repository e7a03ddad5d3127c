// Which findings the repository itself allows: by .gitleaksignore, by allowlists of .gitleaks.toml, by comments.
import { copyFile, mkdir, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { Fault } from '../../../outcome.ts';
import type { ReviewContext } from '../../rule.ts';
import { configFile, configWithAllowlists, maximumConfigBytes } from './allowlists.ts';
import { gitleaks, type Leak } from './gitleaks.ts';

const ignoreFile = '.gitleaksignore';
const maximumIgnoreBytes = 256 * 1024;
const comment = 'gitleaks:allow';

/** What allows findings, and how many; `broken` when .gitleaks.toml cannot be read by gitleaks. */
export interface Allowed {
  readonly left: readonly Leak[];
  readonly counts: ReadonlyMap<string, number>;
  readonly broken: boolean;
}

/** Takes out what the repository allows. Paths of the leaks are relative to the tree. */
export async function withoutAllowed(leaks: readonly Leak[], context: ReviewContext): Promise<Allowed> {
  const counts = new Map<string, number>();
  const ignored = fingerprints(context.tree.text(ignoreFile, maximumIgnoreBytes));
  const after = (by: string, kept: (leak: Leak) => boolean, from: readonly Leak[]): Leak[] => {
    const left = from.filter(kept);
    if (left.length < from.length) counts.set(by, from.length - left.length);
    return left;
  };
  const first = after(ignoreFile, (leak) => !ignored.has(fingerprint(leak)), leaks);
  const second = after(`${comment} comments`, (leak) => !hasComment(leak, context), first);
  const stillFound = await secondScan(second, context);
  if (stillFound === 'broken') return { left: second, counts, broken: true };
  const left = after(configFile, (leak) => stillFound?.has(fingerprint(leak)) !== false, second);
  return { left, counts, broken: false };
}

function fingerprint({ File, RuleID, StartLine }: Leak): string {
  return `${File}:${RuleID}:${StartLine}`;
}

/** Lines are `file:rule:line`, with the commit in front where they come from a scan of the history. */
function fingerprints(file: string | undefined): ReadonlySet<string> {
  const lines = (file ?? '').split('\n').map((line) => line.trim());
  return new Set(
    lines.filter((line) => line !== '' && !line.startsWith('#')).map((line) => line.replace(/^[0-9a-f]{40}:/, '')),
  );
}

function hasComment({ File, StartLine, EndLine }: Leak, { tree }: ReviewContext): boolean {
  const lines = tree.text(File, 16 * 1024 * 1024)?.split('\n') ?? [];
  return lines.slice(StartLine - 1, Math.max(StartLine, EndLine)).some((line) => line.includes(comment));
}

/**
 * Scans the files with findings once more with the repository's allowlists. They are copied, since its patterns are
 * written for paths from its top. Undefined: it has no allowlists.
 */
async function secondScan(
  leaks: readonly Leak[],
  { tree, source, notes, signal }: ReviewContext,
): Promise<ReadonlySet<string> | 'broken' | undefined> {
  const config =
    leaks.length === 0
      ? undefined
      : configWithAllowlists(
          tree.text(configFile, maximumConfigBytes) ?? '',
          new Set(leaks.map((leak) => leak.RuleID)),
        );
  if (config === undefined) return undefined;
  const copies = join(notes, 'leaks');
  try {
    for (const file of new Set(leaks.map((leak) => leak.File))) {
      // gitleaks takes this one wherever it scans.
      if (file === ignoreFile) continue;
      await mkdir(join(copies, dirname(file)), { recursive: true });
      await copyFile(join(source, file), join(copies, file));
    }
    const again = await gitleaks({ folder: '.', cwd: copies, notes: join(notes, 'gitleaks-again'), config, signal });
    const found = new Set(again.map(fingerprint));
    for (const leak of leaks) if (leak.File === ignoreFile) found.add(fingerprint(leak));
    return found;
  } catch (error) {
    if (error instanceof Fault) return 'broken';
    throw error;
  } finally {
    await rm(copies, { recursive: true, force: true });
  }
}
