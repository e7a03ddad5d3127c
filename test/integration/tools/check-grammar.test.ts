// check_grammar finds faults in English by itself, and asks LanguageTool for the rest.
import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { afterAll, test } from 'vitest';
import { z } from 'zod';
import { createCheckGrammarTool } from '../../../api/tools/builtin/check-grammar/check-grammar.ts';
import { applyCorrections, match } from '../../../api/tools/builtin/check-grammar/judge.ts';
import { createWorkers } from '../../../api/tools/engine/workers/pool.ts';
import { Problem } from '../../../lib/problem.ts';
import { scoreOf, sentencesOf, verdictOf, type Verdict } from '../../corpus/grammar/corpus.ts';
import type { ToolDependencies } from '../../../api/tools/tool.ts';
import { isDeep } from '../../support/repetitions.ts';
import { call, extendTasks, isProblem, createServices, patience, shortenTasks } from '../../support/tools/call.ts';

const pool = createWorkers(patience);
const workers = extendTasks(pool);
afterAll(() => workers.close());
const shape = z.object({
  language: z.string(),
  checker: z.string(),
  matches: z.array(match),
  match_count: z.number(),
  offset_unit: z.string(),
  corrected: z.string(),
});
const checkBy = async (
  some: Partial<ToolDependencies>,
  input: Record<string, unknown>,
): Promise<z.output<typeof shape>> =>
  shape.parse((await call(createCheckGrammarTool(createServices({ workers, ...some })), input)).result);
const check = (input: Record<string, unknown>, languagetool?: string): Promise<z.output<typeof shape>> =>
  checkBy({ urls: languagetool === undefined ? {} : { languagetool } }, input);

test('finds errors in English, and fixes them', async () => {
  const {
    checker,
    offset_unit,
    matches,
    corrected: text,
  } = await check({ text: 'This is an test. She go to teh store.' });
  assert.deepEqual([checker, offset_unit, text], ['harper', 'utf-16', 'This is a test. She goes to the store.']);
  assert.deepEqual(
    matches.map(({ text: there }) => there),
    ['an', 'go', 'teh'],
  );
  assert.deepEqual((await check({ text: 'This is a good sentence.' })).matches, []);
});

test('counts offsets in UTF-16, whatever precedes them', async () => {
  for (const before of ['\u{1F600} ', '\u{1F468}\u200d\u{1F469}\u200d\u{1F467} e\u0301 中文 ', 'a\r\nb ']) {
    const given = `${before}I saw teh store.`;
    const found = (await check({ text: given })).matches.find(({ text }) => text === 'teh');
    assert.equal(found?.offset, given.indexOf('teh'), JSON.stringify(before));
    assert.equal(found.suggestions.includes('the'), true);
  }
});

test('supports the dialects', async () => {
  assert.deepEqual((await check({ text: 'The colour is nice.', lang: 'en-GB' })).matches, []);
  assert.deepEqual(
    (await check({ text: 'The colour is nice.', lang: 'en-US' })).matches.map(({ text }) => text),
    ['colour'],
  );
});

test('applies the first suggestion, and the first of overlapping matches', () => {
  const at = (offset: number, length: number, ...suggestions: string[]): z.output<typeof match> => ({
    offset,
    length,
    suggestions,
    text: '',
    message: '',
    kind: '',
  });
  assert.equal(applyCorrections('abcdef', [at(0, 1, 'X', 'Y'), at(2, 2, ''), at(3, 2, 'Z'), at(5, 1)]), 'Xbef');
});

test('explains that another language needs LanguageTool', async () => {
  await assert.rejects(
    check({ text: 'Das ist ein Test.', language: 'de' }),
    isProblem('service-off', /LanguageTool.*tools\.languagetool\.enabled/),
  );
  await assert.rejects(check({ text: 'x', language: 'not a language' }), /language code/);
  await assert.rejects(check({ text: 'x', language: 'de', level: 'picky' }), /level/);
});

test("reports LanguageTool's matches, and its errors as problems", async () => {
  const replies: [number, string][] = [];
  const asked: string[] = [];
  const server = createServer((request, response) => {
    void (async () => {
      asked.push(`${request.url ?? ''} ${(await request.toArray()).map(String).join('')}`);
      const [status, body] = replies.shift() ?? [500, ''];
      response.writeHead(status).end(body);
    })();
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  try {
    replies.push([
      200,
      JSON.stringify({
        language: { code: 'de-DE' },
        matches: [
          {
            offset: 4,
            length: 3,
            message: 'Fehler',
            replacements: [{ value: 'ist' }],
            rule: { issueType: 'misspelling' },
          },
        ],
      }),
    ]);
    const {
      language,
      checker,
      matches,
      corrected: text,
    } = await check({ text: 'Das its gut & schön', language: 'de' }, url);
    assert.deepEqual([language, checker, text], ['de-DE', 'languagetool', 'Das ist gut & schön']);
    assert.deepEqual(matches, [
      { offset: 4, length: 3, text: 'its', message: 'Fehler', kind: 'misspelling', suggestions: ['ist'] },
    ]);
    assert.deepEqual(asked, ['/v2/check text=Das+its+gut+%26+sch%C3%B6n&language=de-DE']);
    replies.push(
      [400, "Error: 'xx' is not a language code known to LanguageTool."],
      [500, 'oops'],
      [200, 'no json'],
      [200, '{}'],
    );
    await assert.rejects(
      check({ text: 'x', language: 'xx' }, url),
      isProblem('unprocessable', /'xx' is not a language code/),
    );
    for (let index = 0; index < 3; index += 1)
      await assert.rejects(
        check({ text: 'x', language: 'de' }, url),
        isProblem('tool-failed', /LanguageTool returned/),
      );
  } finally {
    server.close();
    server.closeAllConnections();
  }
  await assert.rejects(
    check({ text: 'x', language: 'de' }, url),
    isProblem('tool-failed', /cannot be reached: LanguageTool/),
  );
});

test('rejects a text in another language, and does not correct its words', async () => {
  const german = 'Der Hafenmeister unterschrieb gestern die Papiere vor dem Mittag.';
  await assert.rejects(
    check({ text: german }),
    isProblem('unprocessable', /in German \(de\), not in English.*language=de/),
  );
  await assert.rejects(check({ text: german, language: 'fr' }), isProblem('unprocessable', /not in French/));
  await assert.rejects(
    check({ text: 'The papers were signed before noon by all of us.', language: 'de' }),
    isProblem('unprocessable', /in English \(en\)/),
  );
});

test('checks English itself with auto, and needs LanguageTool for other languages', async () => {
  const {
    language,
    checker,
    corrected: text,
  } = await check({ text: 'She go to teh store every day.', language: 'auto' });
  assert.deepEqual([language, checker, text], ['en', 'harper', 'She goes to the store every day.']);
  await assert.rejects(check({ text: 'Hm', language: 'auto' }), isProblem('service-off', /LanguageTool/));
});

test('accepts British words without a dialect', async () => {
  assert.deepEqual((await check({ text: 'He apologised for the colour of his licence.' })).matches, []);
});

test('makes 95 of 100 changed sentences correct', async () => {
  const sentences = sentencesOf('en');
  const verdicts: Verdict[] = [];
  // Every other one; all of them in `npm run test:deep`.
  for (const sentence of sentences.filter((_, index) => isDeep || index % 2 === 0))
    verdicts.push(verdictOf(sentence, (await check({ text: sentence.given })).corrected));
  const { precision, recall } = scoreOf(verdicts);
  assert.ok(sentences.length >= 200);
  assert.ok(precision >= 0.95, `precision ${precision}`);
  assert.ok(recall >= 0.55, `recall ${recall}`);
});

test('finishes on long and odd texts', async () => {
  // On the pool itself: its other tasks have ten times as long.
  const impatient = { workers: shortenTasks(pool, { fromMs: 20_000, toMs: 400 }) };
  for (const text of ['teh '.repeat(5_000), '('.repeat(20_000), 'a'.repeat(20_000), '\ud800 teh']) {
    const ended = (error: unknown): boolean =>
      error instanceof Problem && ['tool-limit', 'unprocessable'].includes(error.type.slug);
    const outcome = await checkBy(impatient, { text }).then(
      ({ match_count, matches }) => match_count >= matches.length && matches.length <= 500,
      ended,
    );
    assert.equal(outcome, true, text.slice(0, 10));
    assert.equal((await check({ text: 'I saw teh store.' })).corrected, 'I saw the store.');
  }
  await assert.rejects(check({ text: 'a'.repeat(20_001) }), /20000/);
});
