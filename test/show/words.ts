// The words of the model in the table of tools: written here, since no model can be asked. All around them is real.
import { z } from 'zod';

const german: Readonly<Record<string, string>> = {
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
  return known === undefined ? translation(said) : known[1];
}

function translation(said: string): string {
  const passages = /Here is the input:\s*(\[[^]*\])\s*$/.exec(said)?.[1];
  if (passages === undefined) return inGerman(said.split('Now translate the following text:').at(-1)?.trim() ?? '');
  return JSON.stringify(
    z
      .array(z.object({ id: z.int(), input: z.string() }))
      .parse(JSON.parse(passages))
      .map(({ id, input }) => ({ id, output: inGerman(input) })),
  );
}
