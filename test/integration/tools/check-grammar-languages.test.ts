// check_grammar in German and French, by a real LanguageTool server.
import assert from 'node:assert/strict';
import { afterAll, beforeAll, describe, it } from 'vitest';
import { z } from 'zod';
import { createCheckGrammarTool } from '../../../api/tools/builtin/check-grammar/check-grammar.ts';
import { match } from '../../../api/tools/builtin/check-grammar/judge.ts';
import { createWorkers } from '../../../api/tools/engine/workers/pool.ts';
import { call, isProblem, createServices } from '../../support/tools/call.ts';
import { startLanguageTool } from '../../support/services/languagetool.ts';
import type { LocalServer } from '../../support/services/python.ts';

const workers = createWorkers();
const shape = z.object({
  language: z.string(),
  checker: z.literal('languagetool'),
  matches: z.array(match),
  match_count: z.number(),
  corrected: z.string(),
});

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
    server = await startLanguageTool();
  });
  afterAll(async () => {
    await server.stop();
    await workers.close();
  });

  it('finds misspellings and grammar in German, and fixes them', async () => {
    const { language, matches, corrected } = await check('Das ist ein Feler. 😀 Er geht zu Schule.', 'de');
    assert.equal(language, 'de-DE', 'a variant, since LanguageTool checks no spelling without one');
    assert.deepEqual(
      matches.map(({ text, kind }) => [text, kind]),
      [
        ['Feler', 'misspelling'],
        ['zu', 'uncategorized'],
      ],
    );
    assert.equal(corrected, 'Das ist ein Fehler. 😀 Er geht zur Schule.');
    assert.deepEqual((await check('Das ist ein guter Satz.', 'de-DE')).matches, []);
  });

  it('keeps the requested variant', async () => {
    assert.equal((await check('Die Straße ist breit.', 'de-CH')).corrected, 'Die Strasse ist breit.');
    assert.deepEqual((await check('Die Straße ist breit.', 'de')).matches, []);
  });

  it('finds grammar in French', async () => {
    const { language, matches, corrected } = await check('Les enfant mange une pomme.', 'fr');
    assert.equal(language, 'fr');
    assert.equal(matches[0]?.offset, 0);
    assert.match(matches[0].message, /enfant/);
    assert.notEqual(corrected, 'Les enfant mange une pomme.');
  });

  it('detects the language, and checks its spelling too', async () => {
    const { language, matches } = await check('Das ist ein Feler, den ich gestern gemacht habe.', 'auto');
    assert.equal(language, 'de-DE');
    assert.deepEqual(
      matches.map(({ text }) => text),
      ['Feler'],
    );
  });

  it('lists the supported languages for an unsupported one', async () => {
    await assert.rejects(check('x', 'xx'), isProblem('unprocessable', /'xx' is not a language code.*de-DE/));
  });
});
