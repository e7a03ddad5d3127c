// A RegExp for untrusted patterns: RE2 matches it in time proportional to the text, where JavaScript's engine may take
// exponential time. All methods of RegExp and String use exec(), so only exec() is replaced.
import { RE2JS, type Matcher } from 're2js';
import { Problem } from '../../../lib/problem.ts';
import { unprocessable } from '../problems.ts';

/** The last search is cached, because split() requests a match at every position of a text. */
interface Search {
  readonly text: string;
  readonly from: number;
  readonly match: RegExpExecArray | null;
}

export class BoundedPattern extends RegExp {
  static override get [Symbol.species](): RegExpConstructor {
    return BoundedPattern as unknown as RegExpConstructor;
  }

  readonly #re2: RE2JS;
  #last: Search | undefined;

  /** @throws SyntaxError for an invalid pattern, Problem (unprocessable) for one that RE2 does not support */
  constructor(pattern: string | RegExp, flags?: string) {
    super(pattern, flags);
    this.#re2 = compile(this);
  }

  override exec(text: string): RegExpExecArray | null {
    const moves = this.global || this.sticky;
    const from = moves ? this.lastIndex : 0;
    const found = from > text.length ? null : this.#find(text, from);
    const match = this.sticky && found?.index !== from ? null : found;
    if (moves) this.lastIndex = match === null ? 0 : match.index + match[0].length;
    return match;
  }

  #find(text: string, from: number): RegExpExecArray | null {
    const last = this.#last;
    if (last?.text === text && from >= last.from && from <= (last.match?.index ?? text.length)) return last.match;
    const matcher = this.#re2.matcher(text);
    const match = matcher.find(from) ? toMatch(matcher, text) : null;
    this.#last = { text, from, match };
    return match;
  }
}

function toMatch(matcher: Matcher, input: string): RegExpExecArray {
  const groups = Array.from({ length: matcher.groupCount() + 1 }, (_, at) => matcher.group(at) ?? undefined);
  const named = Object.entries(matcher.getNamedGroups()).map(([name, text]) => [name, text ?? undefined]);
  return Object.assign(groups, {
    index: matcher.start(),
    input,
    groups: named.length === 0 ? undefined : (Object.fromEntries(named) as Record<string, string | undefined>),
  }) as RegExpExecArray;
}

function compile(pattern: RegExp): RE2JS {
  const { ignoreCase, multiline, dotAll } = pattern;
  const flags =
    (ignoreCase ? RE2JS.CASE_INSENSITIVE : 0) | (multiline ? RE2JS.MULTILINE : 0) | (dotAll ? RE2JS.DOTALL : 0);
  const translated = RE2JS.translateRegExp(toRe2(pattern));
  try {
    return RE2JS.compile(translated, flags);
  } catch (error) {
    throw createCompileProblem(pattern, error);
  }
}

/** RE2 limits repeat counts to 1000, so that a short pattern never becomes a large program. */
function createCompileProblem({ source }: RegExp, error: unknown): Problem {
  const why = error instanceof Error ? error.message.replace(/^error parsing regexp: /, '') : 'malformed';
  const fix = why.startsWith('invalid repeat count')
    ? 'Repeat at most 1000 times; for the length of a text use minLength and maxLength.'
    : 'See https://github.com/google/re2/wiki/Syntax for what can be written.';
  return new Problem(
    unprocessable,
    `The pattern ${source.slice(0, 100)} cannot be matched by RE2: ${why.slice(0, 150)}. ${fix}`,
    { cause: error },
  );
}

/** Features that RE2 does not support because they need more than linear time, with their names and alternatives. */
const refusals: readonly { readonly form: RegExp; readonly name: string; readonly fix: string }[] = [
  {
    form: /^\(\?=/,
    name: 'a look-ahead (?=…)',
    fix: 'Write each condition as a pattern of its own; in a JSON Schema, put them into allOf.',
  },
  {
    form: /^\(\?!/,
    name: 'a negative look-ahead (?!…)',
    fix: 'Write what may not match as a pattern of its own; in a JSON Schema, put it into not.',
  },
  {
    form: /^\(\?<[=!]/,
    name: 'a look-behind (?<=…) or (?<!…)',
    fix: 'Match what comes before as part of the pattern.',
  },
  {
    form: /^\\([1-9]|k<)/,
    name: 'a back-reference',
    fix: 'Write out what may be repeated; in a JSON Schema, list the values in enum.',
  },
  {
    form: /^\\[pP]\{(?!(Script|sc|General_Category|gc)=)[^}]*=/,
    name: 'a Unicode property with a value',
    fix: 'Use Script= or General_Category=, such as \\p{Script=Greek}.',
  },
];

const space = String.raw`\t\n\v\f\r \x{A0}\x{1680}\x{2000}-\x{200A}\x{2028}\x{2029}\x{202F}\x{205F}\x{3000}\x{FEFF}`;
const lineEnd = String.raw`\n\r\x{2028}\x{2029}`;
/** Unicode's long category names, which RE2 does not support. */
const categories: Readonly<Record<string, string>> = {
  Letter: 'L',
  Lowercase_Letter: 'Ll',
  Uppercase_Letter: 'Lu',
  Mark: 'M',
  Number: 'N',
  Decimal_Number: 'Nd',
  Punctuation: 'P',
  punct: 'P',
  Symbol: 'S',
  Separator: 'Z',
  Space_Separator: 'Zs',
  Other: 'C',
  Control: 'Cc',
};

/** One element of a pattern: an escape, the start of a group, or a single character. */
const element = /\\[pP]\{[^}]*\}|\\k<|\\[^]|\(\?<?[=!]|[^]/gu;

/** Translates a JavaScript pattern to RE2 syntax. @throws Problem (unprocessable) that names the unsupported feature */
export function toRe2({ source, dotAll }: RegExp): string {
  let inClass = false;
  return source.replaceAll(element, (part) => {
    if (part === ']') inClass = false;
    const written = inClass ? translateInsideClass(part) : translateOutsideClass(part, dotAll, source);
    if (part === '[') inClass = true;
    return written;
  });
}

function translateOutsideClass(part: string, dotAll: boolean, source: string): string {
  for (const { form, name, fix } of refusals) if (form.test(part)) throw createUnsupportedProblem(source, name, fix);
  if (part === '.') return dotAll ? part : `[^${lineEnd}]`;
  if (part === String.raw`\s`) return `[${space}]`;
  return part === String.raw`\S` ? `[^${space}]` : translateProperty(part);
}

/** Within a class, `\S` stays RE2's ASCII-only one: a class cannot contain the complement of another set. */
function translateInsideClass(part: string): string {
  if (part === String.raw`\b`) return String.raw`\x08`;
  return part === String.raw`\s` ? space : translateProperty(part);
}

function translateProperty(part: string): string {
  const [, escape = '', name = ''] = /^(\\[pP])\{(?:(?:Script|sc|General_Category|gc)=)?([^}]*)\}$/.exec(part) ?? [];
  if (escape === '') return part;
  return `${escape}{${Object.hasOwn(categories, name) ? (categories[name] ?? name) : name}}`;
}

function createUnsupportedProblem(source: string, name: string, fix: string): Problem {
  return new Problem(
    unprocessable,
    `The pattern ${source.slice(0, 100)} uses ${name}, which is not supported: patterns are matched by RE2, in time proportional to the text. ${fix}`,
  );
}
