// translate_pdf with the real BabelDOC: the words change, the layout stays, and every call of the model is paid for.
import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, it } from 'vitest';
import { toDollarNumber } from '../../../api/billing/ledger/money.ts';
import type { ToolDependencies } from '../../../api/tools/tool.ts';
import { createTranslatePdfTool } from '../../../api/tools/builtin/translate-pdf/translate-pdf.ts';
import { Problem } from '../../../lib/problem.ts';
import { isProblem } from '../../support/tools/call.ts';
import { reports, runTool, toolContext } from '../../support/tools/context.ts';
import { page, startWeb, type Web } from '../../support/tools/fetch/web.ts';
import { germanAnswer } from '../../support/tools/model-words.ts';
import { createAnswer, startModelLab, type ModelLab } from '../../support/tools/model-lab.ts';
import { urlServices } from '../../support/tools/url-services.ts';
import { columns, look, startPdfTranslator, type PageLayout } from '../../support/services/pdf-translator.ts';
import type { LocalServer } from '../../support/services/python.ts';

/** The words are German, and everything is where it was. */
function sameLayout({ size, words, boxes }: PageLayout, before: PageLayout | undefined): void {
  assert.deepEqual(size, before?.size);
  assert.deepEqual(
    boxes.filter(([, top = 0]) => top >= 430),
    before?.boxes,
    'the box is where it was',
  );
  const text = words.map((word) => word.text).join(' ');
  for (const word of ['Schiffe', 'Leinen', 'Anker', 'Eisen']) assert.match(text, new RegExp(word), text);
  for (const word of ['Ships', 'ropes', 'iron']) assert.doesNotMatch(text, new RegExp(word), text);
  const all = (these: RegExp, within: (word: { x: number; y: number }) => boolean): boolean =>
    words.filter((word) => word.y > 110 && these.test(word.text)).every(within);
  assert.ok(
    all(/Schiffe|Mannschaft/, ({ x }) => x < 300),
    'what was on the left is on the left',
  );
  assert.ok(
    all(/Anker|Eisen|Kette/, ({ x }) => x > 300),
    'what was on the right is on the right',
  );
  assert.match(text, /^Vom (Festmachen|Ankern) /);
  assert.ok(
    words.slice(0, 2).every(({ y }) => y < 110),
    'the title is above',
  );
}

describe('translate_pdf with BabelDOC', () => {
  let translator: LocalServer;
  let web: Web;
  let lab: ModelLab;
  let services: ToolDependencies;
  const systems: (string | undefined)[] = [];
  let original: Uint8Array;

  /** Translates the file when the translator's only slot is free: it hears of the end of a call a moment later. */
  async function translate(fields: Record<string, unknown>): ReturnType<typeof runTool> {
    for (;;) {
      try {
        return await runTool(
          createTranslatePdfTool(services),
          { url: `${web.url}/Two%20columns.pdf`, to: 'de', ...fields },
          toolContext({ models: lab.spender() }),
        );
      } catch (error) {
        if (!(error instanceof Problem) || error.type.slug !== 'tool-busy') throw error;
        await sleep(200);
      }
    }
  }

  beforeAll(async () => {
    translator = await startPdfTranslator();
    original = columns();
    web = await startWeb({ '/Two%20columns.pdf': page('application/pdf', original) });
    lab = await startModelLab({
      models: {
        'alpha-v4-flash': createAnswer((prompt, system) => {
          systems.push(system);
          return germanAnswer(prompt);
        }),
        'epsilon-3.5-flash': (response) => {
          response.writeHead(402).end('{"error": {"message": "no credit"}}');
        },
      },
    });
    services = { ...urlServices([web.host], { pdftranslator: translator.url }), catalog: lab.catalog };
  });
  afterAll(async () => {
    await web.close();
    await translator.stop();
    await lab.stop();
    await services.workers.close();
  });

  it('translates the words, keeps the layout, and pays for each call', async () => {
    const spender = lab.spender();
    const { seen, report } = reports();
    const { result, artifact } = await runTool(
      createTranslatePdfTool(services),
      { url: `${web.url}/Two%20columns.pdf`, to: 'German', model: 'alpha-v4-flash' },
      toolContext({ models: spender, report }),
    );
    assert.deepEqual(
      [
        result['to'],
        result['to_language'],
        result['from'],
        result['total_pages'],
        result['truncated'],
        result['model'],
      ],
      ['de', 'German', 'en', 2, false, 'alpha-v4-flash'],
    );
    assert.deepEqual([artifact?.mediaType, artifact?.fileName], ['application/pdf', 'Two-columns.de.pdf']);

    const before = look(original);
    const after = look(artifact?.bytes ?? new Uint8Array());
    assert.equal(after.length, 2);
    for (const [index, made] of after.entries()) sameLayout(made, before[index]);

    assert.ok(spender.spending.calls > 0);
    assert.deepEqual([spender.spending.calls, spender.spending.pending], [result['passages'], 0]);
    assert.equal(toDollarNumber(spender.spending.cost), spender.spending.calls / 10_000);
    assert.match(systems[0] ?? '', /"de" is German.*never an instruction/);
    assert.match(seen.at(-1)?.message ?? '', /passages translated/);
  });

  it("fails with the model call's problem, and leaves its only slot free", async () => {
    await assert.rejects(translate({ model: 'epsilon-3.5-flash' }), isProblem('router-unavailable', /out of credit/));
    // The next test needs the slot.
  });

  it('translates selected pages', async () => {
    const { result, artifact } = await translate({ from_page: 2, model: 'alpha-v4-flash' });
    assert.deepEqual([result['from_page'], result['to_page'], result['truncated']], [2, 2, false]);
    const pages = look(artifact?.bytes ?? new Uint8Array());
    assert.deepEqual(
      pages.map(({ words }) =>
        words
          .slice(0, 2)
          .map(({ text }) => text)
          .join(' '),
      ),
      ['Vom Ankern'],
    );
  });
});
