// Rule: the files in use contain no live credentials. gitleaks finds them; findings that the repository allows are
// reported.
import { dirname, join, posix, relative } from 'node:path';
import { copyFile, mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { stringify } from 'smol-toml';
import { z } from 'zod';
import type { Finding } from '../../../../../crds/hosted-app.ts';
import { listImages } from '../../../components.ts';
import { toOneLine, keepTail } from '../../../text.ts';
import type { ReviewContext, Rule } from '../../review.ts';
import { isCheckedSecret, isPublicPath, isSamplePath, isServerKey } from './formats.ts';
import { buildChildEnvironment, run } from '../../../../../lib/child-process.ts';
import { Fault } from '../../../contract.ts';
import { parseToml, readField, readText, readTexts } from '../../../manifest.ts';

const fixError =
  'Revoke this credential now: it is public. Then remove it from the files and the history (git filter-repo), push, and give the app a new one with PUT /api/apps/{slug}/secrets/NAME. If it is no credential, say so with a gitleaks:allow comment in its line.';
const fixWarning =
  'If this is a real credential, revoke it and give the app a new one with PUT /api/apps/{slug}/secrets/NAME. Otherwise, no change is needed.';

const warningsOfAKind = 5;

export const secrets: Rule = {
  name: 'secrets',
  async check(context) {
    const leaks = await scan(context);
    const allowed = await removeAllowed(leaks, context);
    const findings = allowed.remaining.map((leak) => toFinding(leak, context));
    return [...limitWarnings(removeDuplicates(findings)), ...reportAllowed(allowed)];
  },
};

function removeDuplicates(findings: readonly Finding[]): Finding[] {
  return [...new Map(findings.map((each) => [`${each.rule}\n${each.file ?? ''}\n${each.line ?? ''}`, each])).values()];
}

/** Keeps the first few warnings of each kind, so that other findings of the review stay visible. */
function limitWarnings(findings: readonly Finding[]): Finding[] {
  const warnings = new Map<string, number>();
  const shownFindings = findings.filter(({ rule, severity }) => {
    const count = (warnings.get(rule) ?? 0) + 1;
    if (severity === 'warning') warnings.set(rule, count);
    return severity === 'error' || count <= warningsOfAKind;
  });
  const omitted = findings.length - shownFindings.length;
  if (omitted === 0) return shownFindings;
  const message = `${omitted} more warnings of these kinds are not shown.`;
  return [
    ...shownFindings,
    {
      rule: 'secrets/more',
      severity: 'warning',
      message,
      fix: 'Run "gitleaks dir ." in the repository to see all of them.',
    },
  ];
}

/** Scans the parent folder of the tree, because gitleaks reads a .gitleaksignore in the folder that it is given. */
async function scan({ source, notes, signal }: ReviewContext): Promise<Leak[]> {
  const leaks = await runGitleaks({
    folder: dirname(source),
    cwd: notes,
    notes: join(notes, 'gitleaks'),
    config: '[extend]\nuseDefault = true\n',
    signal,
  });
  return leaks
    .filter((leak) => leak.File.startsWith(`${source}/`))
    .map((leak) => ({ ...leak, File: relative(source, leak.File) }));
}

/** Creates a finding with the location and kind, never the secret itself. */
function toFinding(leak: Leak, context: ReviewContext): Finding {
  const isError =
    isCheckedSecret(leak.RuleID, leak.Secret, Date.now() / 1000) &&
    isUsed(leak, context) &&
    !isForBrowsers(leak, context);
  return {
    rule: `secrets/${leak.RuleID}`,
    severity: isError ? 'error' : 'warning',
    file: leak.File,
    line: leak.StartLine,
    message: `${toOneLine(leak.Description).replace(/\.$/, '')}.`,
    fix: isError ? fixError : fixWarning,
  };
}

/** An app in a folder named examples is not an example. */
function isUsed({ File }: Leak, { input }: ReviewContext): boolean {
  return listImages(input).some(({ input: { path } }) => {
    const inApp = posix.relative(path, File);
    return !isSamplePath(inApp.startsWith('..') ? File : inApp);
  });
}

function isForBrowsers({ RuleID, File, StartLine }: Leak, { tree }: ReviewContext): boolean {
  return RuleID === 'gcp-api-key' && (isPublicPath(File) || !isServerKey(tree.readFile(File) ?? '', StartLine));
}

/** Reports what the repository allows: it is neither an error nor hidden. */
function reportAllowed({ counts, broken }: AllowedLeaks): Finding[] {
  const total = [...counts.values()].reduce((sum, count) => sum + count, 0);
  const parts = [...counts].map(([by, count]) => `${count} by ${by}`);
  const findings: Finding[] = [];
  if (total > 0)
    findings.push({
      rule: 'secrets/allowed',
      severity: 'warning',
      message: `${total} ${total === 1 ? 'finding was' : 'findings were'} allowed by the repository: ${parts.join(', ')}.`,
      fix: 'No change is needed if none of them is a real credential.',
    });
  if (broken)
    findings.push({
      rule: 'secrets/allowlists',
      severity: 'warning',
      file: configFile,
      message: 'gitleaks refused the allowlists of this file, so they were not applied.',
      fix: 'Run "gitleaks dir ." in the repository, and correct what it reports.',
    });
  return findings;
}

// gitleaks itself, and the findings that the repository allows.

const leakReport = z.array(
  z.object({
    RuleID: z.string(),
    Description: z.string(),
    StartLine: z.int(),
    EndLine: z.int(),
    File: z.string(),
    /** The secret itself: evaluated, never shown. */
    Secret: z.string(),
  }),
);
type Leak = z.infer<typeof leakReport>[number];

const leaksFoundExitCode = 3;
const timeoutSeconds = 300;

interface Scan {
  /** The folder to scan; paths in the report start with it, as written. */
  readonly folder: string;
  /** Working directory of gitleaks. */
  readonly cwd: string;
  /** Folder for configuration and report, which is removed afterwards. */
  readonly notes: string;
  /** Text of the configuration. */
  readonly config: string;
  readonly signal?: AbortSignal | undefined;
}

/**
 * Runs gitleaks. It always reads a .gitleaksignore in the given folder, so the folder must have none. The configuration
 * is ours, and gitleaks' inline allow comments are ignored: we evaluate what the repository allows. @throws Fault
 */
async function runGitleaks({ folder, cwd, notes, config, signal }: Scan): Promise<Leak[]> {
  await mkdir(notes, { recursive: true });
  const [settings, output] = [join(notes, 'gitleaks.toml'), join(notes, 'report.json')];
  await writeFile(settings, config);
  const options = {
    '--config': settings,
    '--gitleaks-ignore-path': join(notes, 'none'),
    '--report-format': 'json',
    '--report-path': output,
    '--exit-code': String(leaksFoundExitCode),
    '--log-level': 'error',
    '--timeout': String(timeoutSeconds),
  };
  const flags = ['--ignore-gitleaks-allow', '--no-banner', '--no-color'];
  try {
    const result = await run('gitleaks', ['dir', folder, ...flags, ...Object.entries(options).flat()], {
      env: buildChildEnvironment(),
      cwd,
      ...(signal === undefined ? {} : { signal }),
    });
    if (result.code !== 0 && result.code !== leaksFoundExitCode)
      throw new Fault(`gitleaks failed: ${toOneLine(keepTail(result.stderr, 500))}`);
    return leakReport.parse(JSON.parse(await readFile(output, 'utf8')));
  } finally {
    await rm(notes, { recursive: true, force: true });
  }
}

const ignoreFile = '.gitleaksignore';
const maximumIgnoreBytes = 256 * 1024;
const allowComment = 'gitleaks:allow';

/** What allows findings, and how many; `broken` if gitleaks cannot read .gitleaks.toml. */
interface AllowedLeaks {
  readonly remaining: readonly Leak[];
  readonly counts: ReadonlyMap<string, number>;
  readonly broken: boolean;
}

/** Removes the findings that the repository allows. Paths of the leaks are relative to the tree. */
async function removeAllowed(leaks: readonly Leak[], context: ReviewContext): Promise<AllowedLeaks> {
  const counts = new Map<string, number>();
  const ignored = readFingerprints(context.tree.readFile(ignoreFile, maximumIgnoreBytes));
  const filterBy = (by: string, isKept: (leak: Leak) => boolean, from: readonly Leak[]): Leak[] => {
    const remaining = from.filter(isKept);
    if (remaining.length < from.length) counts.set(by, from.length - remaining.length);
    return remaining;
  };
  const first = filterBy(ignoreFile, (leak) => !ignored.has(toFingerprint(leak)), leaks);
  const second = filterBy(`${allowComment} comments`, (leak) => !hasComment(leak, context), first);
  const stillFound = await scanAgain(second, context);
  if (stillFound === 'broken') return { remaining: second, counts, broken: true };
  const remaining = filterBy(configFile, (leak) => stillFound?.has(toFingerprint(leak)) !== false, second);
  return { remaining, counts, broken: false };
}

function toFingerprint({ File, RuleID, StartLine }: Leak): string {
  return `${File}:${RuleID}:${StartLine}`;
}

/** Lines are `file:rule:line`, preceded by the commit if they come from a scan of the history. */
function readFingerprints(file: string | undefined): ReadonlySet<string> {
  const lines = (file ?? '').split('\n').map((line) => line.trim());
  return new Set(
    lines.filter((line) => line !== '' && !line.startsWith('#')).map((line) => line.replace(/^[0-9a-f]{40}:/, '')),
  );
}

function hasComment({ File, StartLine, EndLine }: Leak, { tree }: ReviewContext): boolean {
  const lines = tree.readFile(File, 16 * 1024 * 1024)?.split('\n') ?? [];
  return lines.slice(StartLine - 1, Math.max(StartLine, EndLine)).some((line) => line.includes(allowComment));
}

/**
 * Scans the files with findings again, with the repository's allowlists. The files are copied, because the allowlists'
 * patterns are relative to the root. Returns undefined if there are no allowlists.
 */
async function scanAgain(
  leaks: readonly Leak[],
  { tree, source, notes, signal }: ReviewContext,
): Promise<ReadonlySet<string> | 'broken' | undefined> {
  const config =
    leaks.length === 0
      ? undefined
      : buildAllowlistConfig(
          tree.readFile(configFile, maximumConfigBytes) ?? '',
          new Set(leaks.map((leak) => leak.RuleID)),
        );
  if (config === undefined) return undefined;
  const copies = join(notes, 'leaks');
  try {
    for (const file of new Set(leaks.map((leak) => leak.File))) {
      // gitleaks reads this file in every folder that it scans.
      if (file === ignoreFile) continue;
      await mkdir(join(copies, dirname(file)), { recursive: true });
      await copyFile(join(source, file), join(copies, file));
    }
    const again = await runGitleaks({ folder: '.', cwd: copies, notes: join(notes, 'gitleaks-again'), config, signal });
    const found = new Set(again.map(toFingerprint));
    for (const leak of leaks) if (leak.File === ignoreFile) found.add(toFingerprint(leak));
    return found;
  } catch (error) {
    if (error instanceof Fault) return 'broken';
    throw error;
  } finally {
    await rm(copies, { recursive: true, force: true });
  }
}

export const configFile = '.gitleaks.toml';
const maximumConfigBytes = 64 * 1024;

const maximumLists = 50;
const maximumPatterns = 200;
const maximumPatternLength = 1_000;
const regexTargets = ['secret', 'match', 'line'];

type Allowlist = Readonly<Record<string, string | string[]>>;

/**
 * Builds a configuration from gitleaks' own rules and the repository's allowlists; undefined if it has none. The
 * patterns are RE2, which runs in linear time, and their number and length are limited. `found` are the rules with
 * findings: gitleaks rejects allowlists for unknown rules.
 */
export function buildAllowlistConfig(file: string, found: ReadonlySet<string>): string | undefined {
  const parsed = parseToml(file);
  const lists = [readField(parsed, 'allowlist'), ...toArray(readField(parsed, 'allowlists'))]
    .slice(0, maximumLists)
    .map((list) => readList(list, found))
    .filter((list) => list !== undefined);
  return lists.length === 0 ? undefined : stringify({ extend: { useDefault: true }, allowlists: lists });
}

function toArray(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? (value as unknown[]) : [];
}

function readList(list: unknown, found: ReadonlySet<string>): Allowlist | undefined {
  const named = Object.fromEntries(
    ['paths', 'regexes', 'stopwords']
      .map((name) => [name, readPatterns(list, name)] as const)
      .filter(([, each]) => each.length > 0),
  );
  const rules = readTexts(list, 'targetRules');
  const targetRules = rules.filter((rule) => found.has(rule));
  if (Object.keys(named).length === 0 || (rules.length > 0 && targetRules.length === 0)) return undefined;
  return { ...named, ...(targetRules.length === 0 ? {} : { targetRules }), ...readModes(list) };
}

/** Reads what the patterns are compared with, and whether all kinds must match. */
function readModes(list: unknown): Allowlist {
  const target = readText(list, 'regexTarget')?.toLowerCase() ?? '';
  return {
    ...(regexTargets.includes(target) ? { regexTarget: target } : {}),
    ...(readText(list, 'condition')?.toUpperCase() === 'AND' ? { condition: 'AND' } : {}),
  };
}

function readPatterns(list: unknown, name: string): string[] {
  return readTexts(list, name)
    .filter((each) => each !== '' && each.length <= maximumPatternLength)
    .slice(0, maximumPatterns);
}
