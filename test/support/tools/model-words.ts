// What a model says in the tests that have none, and in the table of tools: German for the words of the sample PDF, and
// the answers that deep_research asks for. All around these words is real.
import { z } from 'zod';

const german: Readonly<Record<string, string>> = {
  'A study of moorings': 'Vom Festmachen',
  'A study of anchors': 'Vom Ankern',
  Ships: 'Schiffe',
  harbour: 'Hafen',
  ropes: 'Leinen',
  anchor: 'Anker',
  quay: 'Kai',
  iron: 'Eisen',
  chain: 'Kette',
  strong: 'stark',
  crew: 'Mannschaft',
};
const inGerman = (text: string): string =>
  Object.entries(german).reduce((done, [english, word]) => done.replaceAll(english, word), text);

/** What deep_research asks for, by the role that it gives the model. */
const research: readonly (readonly [RegExp, string])[] = [
  [/^You plan/, '{"queries": ["container shipping"]}'],
  [/^You take notes/, 'The first container ship sailed in 1956.'],
  [/cite|sources/i, 'Container shipping began in 1956 [1].'],
];

/** Answers as the instructions and the question ask. */
export function modelWords(said: string, system = ''): string {
  const known = research.find(([role]) => role.test(system));
  return known === undefined ? germanAnswer(said) : known[1];
}

/** Answers BabelDOC's two kinds of questions in their forms, as a model does. */
export function germanAnswer(said: string): string {
  const list = /Here is the input:\s*(\[[^]*\])\s*$/.exec(said)?.[1];
  if (list === undefined) return inGerman(said.split('Now translate the following text:').at(-1)?.trim() ?? '');
  const passages = z.array(z.object({ id: z.int(), input: z.string() })).parse(JSON.parse(list));
  return JSON.stringify(passages.map(({ id, input }) => ({ id, output: inGerman(input) })));
}
