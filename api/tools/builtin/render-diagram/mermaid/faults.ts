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
  /** What did not fit, where no line is known. */
  text: z.string().optional(),
});
export type Fault = z.output<typeof fault>;

/** As mermaid removes them, in its order. */
const removed = [
  /^-{3}\s*[\n\r](?:.*?)[\n\r]-{3}\s*[\n\r]+/s,
  /%{2}{\s*(?:(\w+)\s*:|(\w+))\s*(?:(\w+)|((?:(?!}%{2}).|\r?\n)*))?\s*(?:}%{2})?/gi,
  /(?:^|(?<=\ue001))\s*%%(?!{)[^\n]+\n?/gm,
  /^[\s\ue000\ue001]+/,
];
/** Stand for a character and for a line break that are removed: private characters, of which sources are freed. */
const hole = '\ue000';
const lostBreak = '\ue001';

/** The line of the source in which a line of the parsed text stands. */
export function sourceLine(source: string, parsedLine: number): number {
  const text = removed.reduce(
    (rest, pattern) => rest.replace(pattern, (found) => found.replace(/[^\n\ue001]/g, hole).replace(/\n/g, lostBreak)),
    source.replace(/[\ue000\ue001]/g, ' ').replace(/\r\n?/g, '\n'),
  );
  let parsed = 1;
  let line = 1;
  for (const character of text) {
    if (parsed === parsedLine && character !== hole && character !== lostBreak) break;
    if (character === '\n') parsed += 1;
    if (character === '\n' || character === lostBreak) line += 1;
  }
  return Math.min(line, source.trimEnd().split(/\r\n?|\n/).length);
}

/** The first line with the text that a message names. */
function lineWith(source: string, message: string, text: string | undefined): number | undefined {
  const clue = text ?? /"([^"]+)"/.exec(message)?.[1] ?? /: (\S+?)\.?$/.exec(message)?.[1] ?? '';
  const at = source.split(/\r\n?|\n/).findIndex((line) => line.includes(clue.trim()));
  return clue.trim() === '' || at < 0 ? undefined : at + 1;
}

export function faultOf(source: string, { name, message, line: given, text: clue }: Fault): Problem {
  if (name === 'Empty')
    return problem('Mermaid', 'it has a heading but nothing to draw. Add what the diagram is to show.');
  if (name === 'UnknownDiagramError' || message.startsWith('No diagram type detected'))
    return problem('Mermaid', `no diagram type is known by its beginning: ${beginning(source)}`, 1);
  const parsedLine = given ?? Number(/(?:on|at|in) line:? (\d+)/i.exec(message)?.[1] ?? 0);
  const words = plain(message).replace(
    /\b(on|at|in) line:? (\d+)/gi,
    (_, word: string, at: string) => `${word} line ${sourceLine(source, Number(at))}`,
  );
  const line = parsedLine === 0 ? lineWith(source, message, clue) : sourceLine(source, parsedLine);
  if (line === undefined) return problem('Mermaid', words);
  return problem('Mermaid', `${words} (in ${JSON.stringify(textOf(source, line))})`, line);
}

function textOf(source: string, line: number): string {
  const lines = source.split(/\r\n?|\n/);
  return (lines[line - 1] ?? '').trim().slice(0, 100);
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
