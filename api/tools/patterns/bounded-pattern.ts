// A RegExp for patterns that strangers send: matched by RE2, in time proportional to the text, where the engine of
// JavaScript may take for ever. Everything that RegExp and String offer goes through exec(), so only that is replaced.
import { RE2JS, type Matcher } from 're2js';
import { Problem } from '../../../lib/problem.ts';
import { unprocessable } from '../problems.ts';
import { toRe2 } from './re2-syntax.ts';

/** The last search, since split() asks for a match at every position of a text by itself. */
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

  /** @throws SyntaxError for what is no pattern, Problem (unprocessable) for what RE2 cannot match */
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
    const match = matcher.find(from) ? matchOf(matcher, text) : null;
    this.#last = { text, from, match };
    return match;
  }
}

function matchOf(matcher: Matcher, input: string): RegExpExecArray {
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
    throw refusal(pattern, error);
  }
}

/** RE2 counts what is repeated to 1000, so that a short pattern never becomes a large program. */
function refusal({ source }: RegExp, error: unknown): Problem {
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
