// check_grammar in Portuguese by a real LanguageTool server; in `npm run test:deep`, in German and French too.
import assert from 'node:assert/strict';
import { afterAll, beforeAll, describe, it } from 'vitest';
import { z } from 'zod';
import { createCheckGrammarTool } from '../../../api/tools/builtin/check-grammar/check-grammar.ts';
import { match } from '../../../api/tools/builtin/check-grammar/judge.ts';
import { createWorkers } from '../../../api/tools/engine/workers/pool.ts';
import { chooseSamples, isDeep } from '../../support/repetitions.ts';
import { call, isProblem, createServices, patience } from '../../support/tools/call.ts';
import { startLanguageTool } from '../../support/services/languagetool.ts';
import type { LocalServer } from '../../support/services/python.ts';

const workers = createWorkers(patience);
const shape = z.object({
  language: z.string(),
  checker: z.literal('languagetool'),
  matches: z.array(match),
  match_count: z.number(),
  corrected: z.string(),
});

interface Sample {
  readonly language: string;
  /** Misspelled, and with a wrong word after a character of two UTF-16 units. */
  readonly wrong: string;
  readonly corrected: string;
  readonly matches: readonly (readonly [text: string, kind: string])[];
  readonly right: string;
  /** The variant for the bare language code, since LanguageTool checks no spelling without one. */
  readonly usual: string;
  /** Another one, in which a word of this text is misspelled. */
  readonly variant: string;
  readonly text: string;
  readonly inVariant: string;
  /** To be detected, with one misspelling. */
  readonly unnamed: string;
  readonly misspelling: string;
}

/** Of German and Portuguese, our tool asks for a variant. LanguageTool loads Portuguese in a third of the time. */
const samples: Readonly<Record<string, Sample>> = {
  Portuguese: {
    language: 'pt',
    wrong: 'Isso é um erroo. 😀 Nós vamos com os minhas amigas.',
    corrected: 'Isso é um erro. 😀 Nós vamos com as minhas amigas.',
    matches: [
      ['erroo', 'misspelling'],
      ['os minhas', 'grammar'],
    ],
    right: 'Esta é uma boa frase.',
    usual: 'pt-BR',
    variant: 'pt-PT',
    text: 'A recepção do hotel é grande.',
    inVariant: 'A receção do hotel é grande.',
    unnamed: 'Ontem encontrei um erroo no texto da minha amiga.',
    misspelling: 'erroo',
  },
  German: {
    language: 'de',
    wrong: 'Das ist ein Feler. 😀 Er geht zu Schule.',
    corrected: 'Das ist ein Fehler. 😀 Er geht zur Schule.',
    matches: [
      ['Feler', 'misspelling'],
      ['zu', 'uncategorized'],
    ],
    right: 'Das ist ein guter Satz.',
    usual: 'de-DE',
    variant: 'de-CH',
    text: 'Die Straße ist breit.',
    inVariant: 'Die Strasse ist breit.',
    unnamed: 'Das ist ein Feler, den ich gestern gemacht habe.',
    misspelling: 'Feler',
  },
};
const chosen = chooseSamples(Object.entries(samples));

describe('check_grammar with LanguageTool', () => {
  let server: LocalServer;
  const check = async (text: string, language: string): Promise<z.output<typeof shape>> =>
    shape.parse(
      (
        await call(createCheckGrammarTool(createServices({ workers, urls: { languagetool: server.url } })), {
          text,
          language,
        })
      ).result,
    );

  beforeAll(async () => {
    const texts: Record<string, string> = isDeep ? { fr: 'Un esssai.' } : {};
    for (const [, { usual, variant, wrong }] of chosen) Object.assign(texts, { [usual]: wrong, [variant]: wrong });
    server = await startLanguageTool(texts);
  });
  afterAll(async () => {
    await server.stop();
    await workers.close();
  });

  for (const [name, sample] of chosen) {
    it(`finds misspellings and grammar in ${name}, and fixes them`, async () => {
      const { language, matches, corrected } = await check(sample.wrong, sample.language);
      assert.equal(language, sample.usual);
      assert.deepEqual(
        matches.map(({ text, kind }) => [text, kind]),
        sample.matches,
      );
      assert.equal(corrected, sample.corrected);
      assert.deepEqual((await check(sample.right, sample.usual)).matches, []);
    });

    it(`keeps the requested variant of ${name}`, async () => {
      assert.equal((await check(sample.text, sample.variant)).corrected, sample.inVariant);
      assert.deepEqual((await check(sample.text, sample.language)).matches, []);
    });

    it(`detects ${name}, and checks its spelling too`, async () => {
      const { language, matches } = await check(sample.unnamed, 'auto');
      assert.equal(language, sample.usual);
      assert.deepEqual(
        matches.map(({ text }) => text),
        [sample.misspelling],
      );
    });
  }

  if (isDeep)
    it('finds grammar in French', async () => {
      const { language, matches, corrected } = await check('Les enfant mange une pomme.', 'fr');
      assert.equal(language, 'fr');
      assert.equal(matches[0]?.offset, 0);
      assert.match(matches[0].message, /enfant/);
      assert.notEqual(corrected, 'Les enfant mange une pomme.');
    });

  it('lists the supported languages for an unsupported one', async () => {
    await assert.rejects(check('x', 'xx'), isProblem('unprocessable', /'xx' is not a language code.*de-DE/));
  });
});
