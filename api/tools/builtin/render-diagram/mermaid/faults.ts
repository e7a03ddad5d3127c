// What mermaid says of a source that it cannot parse, with the line as its author counts it: mermaid parses the text
// without its front matter, directives and comments.
import { z } from 'zod';
import { fault as problem } from '../layout.ts';
import type { Problem } from '../../../../../lib/problem.ts';

export const fault = z.object({
  name: z.string(),
  message: z.string(),
  /** In the text that mermaid parses. */
  line: z.number().optional(),
});
export type Fault = z.output<typeof fault>;

/** As mermaid removes them, in its order. */
const removed = [
  /^-{3}\s*[\n\r](?:.*?)[\n\r]-{3}\s*[\n\r]+/s,
  /%{2}{\s*(?:(\w+)\s*:|(\w+))\s*(?:(\w+)|((?:(?!}%{2}).|\r?\n)*))?\s*(?:}%{2})?/gi,
  /^\s*%%(?!{)[^\n]+\n?/gm,
  /^\s+/,
];
/** Stands for a character that is removed; sources have none. */
const hole = '\u0000';

/** The line of the source in which a line of the parsed text stands. */
export function sourceLine(source: string, parsedLine: number): number {
  const text = removed.reduce(
    (rest, pattern) => rest.replace(pattern, (found) => found.replace(/[^\n]/g, hole).replace(/\n/g, '\u0001')),
    source.replace(/\r\n?/g, '\n'),
  );
  let parsed = 1;
  let line = 1;
  for (const character of text) {
    if (parsed === parsedLine && character !== hole && character !== '\u0001') break;
    if (character === '\n') parsed += 1;
    if (character === '\n' || character === '\u0001') line += 1;
  }
  return Math.min(line, source.trimEnd().split(/\r\n?|\n/).length);
}

export function faultOf(source: string, { name, message, line: given }: Fault): Problem {
  if (name === 'Empty')
    return problem('Mermaid', 'it has a heading but nothing to draw. Add what the diagram is to show.');
  if (name === 'UnknownDiagramError' || message.startsWith('No diagram type detected'))
    return problem('Mermaid', `no diagram type is known by its beginning: ${beginning(source)}`, 1);
  const found = /(?:on|at|in) line:? (\d+)/i.exec(message)?.[1];
  const parsedLine = given ?? (found === undefined ? undefined : Number(found));
  const words = plain(message)
    .replace(/\b(on|at|in) line:? (\d+)/gi, (_, word: string, at: string) => `${word} line ${sourceLine(source, Number(at))}`);
  if (parsedLine === undefined) return problem('Mermaid', words);
  const line = sourceLine(source, parsedLine);
  const text = source.split(/\r\n?|\n/)[line - 1]?.trim().slice(0, 100) ?? '';
  return problem('Mermaid', `${words} (in ${JSON.stringify(text)})`, line);
}

/** Without the excerpt of the source, whose line is named, and without a list of all that could stand there. */
function plain(message: string): string {
  const [, kind = '', rest = ''] = /^(Parse|Lexical) error on line \d+[:.]?([\s\S]*)$/i.exec(message) ?? [];
  if (kind === '') return message;
  const got = /Expecting ([\s\S]*?), got '([^']*)'/.exec(rest);
  if (got === null) return kind === 'Lexical' ? 'unrecognized text' : rest.trim();
  const expected = (got[1] ?? '').split(', ');
  const few = expected.length > 8 ? `${expected.slice(0, 8).join(', ')} or others` : expected.join(', ');
  return `unexpected '${got[2] ?? ''}'; expected ${few}`;
}

function beginning(source: string): string {
  const first = source.split('\n').find((text) => text.trim() !== '' && !/^\s*(%%|---)/.test(text));
  return (first ?? '').trim().slice(0, 80);
}
