// Writes a JavaScript pattern so that RE2 means the same by it, and refuses by name what RE2 has no words for.
import { Problem } from '../../../lib/problem.ts';
import { unprocessable } from '../problems.ts';

/** What RE2 cannot do in time proportional to the text, how it is called, and what to write in its place. */
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
/** Long names of categories, as Unicode has them and RE2 does not. */
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

/** One element of a pattern: an escape, a group's head, or a single character. */
const element = /\\[pP]\{[^}]*\}|\\k<|\\[^]|\(\?<?[=!]|[^]/gu;

/** @throws Problem (unprocessable) that names what cannot be matched */
export function toRe2({ source, dotAll }: RegExp): string {
  let inClass = false;
  return source.replaceAll(element, (part) => {
    if (part === ']') inClass = false;
    const written = inClass ? inside(part) : outside(part, dotAll, source);
    if (part === '[') inClass = true;
    return written;
  });
}

function outside(part: string, dotAll: boolean, source: string): string {
  for (const { form, name, fix } of refusals) if (form.test(part)) throw refused(source, name, fix);
  if (part === '.') return dotAll ? part : `[^${lineEnd}]`;
  if (part === String.raw`\s`) return `[${space}]`;
  return part === String.raw`\S` ? `[^${space}]` : property(part);
}

/** Within a class `\S` stays as RE2 has it, of ASCII only: a class knows no complement of a part. */
function inside(part: string): string {
  if (part === String.raw`\b`) return String.raw`\x08`;
  return part === String.raw`\s` ? space : property(part);
}

function property(part: string): string {
  const [, escape = '', name = ''] = /^(\\[pP])\{(?:(?:Script|sc|General_Category|gc)=)?([^}]*)\}$/.exec(part) ?? [];
  if (escape === '') return part;
  return `${escape}{${Object.hasOwn(categories, name) ? (categories[name] ?? name) : name}}`;
}

function refused(source: string, name: string, fix: string): Problem {
  return new Problem(
    unprocessable,
    `The pattern ${source.slice(0, 100)} uses ${name}, which is not supported: patterns are matched by RE2, in time proportional to the text. ${fix}`,
  );
}
