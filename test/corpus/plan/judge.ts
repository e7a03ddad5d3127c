// Judges a plan by what a person expects: what is started, from which folder, and what is built before.
import { posix } from 'node:path';
import type { Entry, Expectation, Verdict } from '../corpus.ts';
import type { Planned } from './planned.ts';

export interface Judgment {
  readonly verdict: Verdict;
  readonly reason: string;
}

/** Names of one thing. */
const alike: Readonly<Record<string, readonly string[]>> = {
  node: ['node', 'bun', 'javascript', 'typescript'],
  bun: ['bun', 'node'],
  go: ['go', 'golang'],
  dotnet: ['dotnet', 'csharp'],
};

/**
 * A refusal is right where one is expected. A plan is right when its language is the expected one and
 *  - any of the start commands is in what it starts, with scripts of package.json written out, in the expected folder;
 *  - everything that must be built is in what it builds or starts;
 *  - files are served from the expected folder, and nothing else is started;
 *  - of an app of several parts, each is in it.
 * The Dockerfile of the repository is right where a plan is expected. A person's word goes before all of it.
 */
export function judge(entry: Entry, planned: Planned, version = ''): Judgment {
  const person = entry.judged?.[`${planned.planner}@${version}`] ?? entry.judged?.[planned.planner];
  if (person !== undefined) return { verdict: person.verdict, reason: `judged by a person: ${person.reason}` };
  const expectations = [entry.expected, ...(entry.also ?? [])];
  const faults = expectations.map((each) => faultOf(each, planned));
  if (faults.includes(undefined)) return { verdict: 'right', reason: planned.why };
  if (planned.refused) return { verdict: 'refused', reason: planned.why };
  return { verdict: 'wrong', reason: faults.join('; or ') };
}

/** What differs; undefined when nothing does. */
function faultOf(expected: Expectation, planned: Planned): string | undefined {
  if ('refuse' in expected) return planned.refused ? undefined : `expected a refusal: ${expected.refuse}`;
  if (planned.refused) return 'refused';
  if (planned.dockerfile !== undefined) return undefined;
  if (expected.strategy === 'parts') return partsFault(expected, planned);
  if (!isLanguage(expected.strategy, planned))
    return `expected ${expected.strategy}, got ${planned.strategy ?? 'nothing'}${where(planned)}`;
  return expected.strategy === 'static' ? filesFault(expected, planned) : programFault(expected, planned);
}

function isLanguage(expected: string, { strategy = '' }: Planned): boolean {
  return (alike[expected] ?? [expected]).includes(strategy);
}

type Kind<Strategy> = Extract<Expectation, { strategy: Strategy }>;

function partsFault({ parts }: Kind<'parts'>, planned: Planned): string | undefined {
  const text = textOf(planned);
  const missing = parts.filter((part) => !contains(text, part));
  return missing.length === 0 ? undefined : `without ${missing.join(', ')}${where(planned)}`;
}

function filesFault({ serves, folder = '.' }: Kind<'static'>, planned: Planned): string | undefined {
  const expected = posix.join(folder, serves);
  const got = posix.join(planned.folder, planned.serves ?? '.');
  const same = posix.join(expected, '.') === posix.join(got, '.');
  return same ? undefined : `expected ${expected} to be served, got ${got}`;
}

function programFault(
  expected: Exclude<Expectation, { refuse: string } | Kind<'static' | 'parts'>>,
  planned: Planned,
): string | undefined {
  const { start, must = [], folder = '.' } = expected;
  if (folder !== '.' && !inFolder(folder, planned)) return `expected in the folder ${folder}${where(planned)}`;
  const started = start.length === 0 || start.some((each) => starts(each, planned));
  if (!started) return `expected ${start.join(' or ')}, got ${planned.start.split('\n')[0] ?? ''}${where(planned)}`;
  const text = textOf(planned);
  const missing = must.filter((each) => !contains(text, each));
  return missing.length === 0 ? undefined : `${missing.join(', ')} is neither built nor started${where(planned)}`;
}

function inFolder(folder: string, planned: Planned): boolean {
  return posix.join(planned.folder, '.') === posix.join(folder, '.') || contains(textOf(planned), folder);
}

/** A plan for a folder below names its files from there. */
function starts(needle: string, { start, folder }: Planned): boolean {
  if (contains(start, needle)) return true;
  if (folder === '.') return false;
  const below = needle.replaceAll(`${folder}/`, '').replaceAll(`${folder.replaceAll('/', '.')}.`, '');
  return below !== needle && contains(start, below);
}

const textOf = ({ folder, start, build }: Planned): string => `${folder}\n${start}\n${build}`;
const where = ({ folder }: Planned): string => (folder === '.' ? '' : ` in ${folder}`);

/** Whether all pieces between `*` come in this order in one line. */
export function contains(text: string, needle: string): boolean {
  const pieces = needle.split('*');
  return text.split('\n').some((line) => {
    let at = 0;
    return pieces.every((piece) => {
      const found = line.indexOf(piece, at);
      at = found + piece.length;
      return found !== -1;
    });
  });
}
