// translate_pdf: what it refuses, how it talks with the translator, and what becomes of a translator that misbehaves.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, beforeEach, describe, it } from 'vitest';
import type { ServiceUrls } from '../../../../../../api/tools/services/backing-services.ts';
import type { ToolDependencies } from '../../../../../../api/tools/tool.ts';
import type { Prompt, Spender } from '../../../../../../api/tools/engine/spender.ts';
import { createTranslatePdfTool } from '../../../../../../api/tools/builtin/translate-pdf/translate-pdf.ts';
import { Problem } from '../../../../../../lib/problem.ts';
import { call, isProblem } from '../../../../../support/tools/call.ts';
import { page, startWeb, type Web } from '../../../../../support/tools/fetch/web.ts';
import { pdf } from '../../../../../support/tools/pdf.ts';
import { urlServices } from '../../../../../support/tools/url-services.ts';

type Script = (say: (line: object | string) => void, heard: AsyncIterator<string>, response: ServerResponse) => unknown;

const two = pdf(['First page', 'Second page']);
const made = Buffer.from(pdf(['Erste Seite'])).toString('base64');
const ask = (id: number, prompt = 'Hello', max_tokens = 2_048): object => ({
  ask: { id, system: 'Be exact.', prompt, max_tokens },
});

/** Lines of a request, after the order and the PDF that come first. */
async function* linesAfter(request: IncomingMessage, orders: Record<string, unknown>[]): AsyncGenerator<string> {
  let [rest, skip] = [Buffer.alloc(0), -1];
  for await (const chunk of request as AsyncIterable<Buffer>) {
    rest = Buffer.concat([rest, chunk]);
    for (;;) {
      if (skip > 0 && rest.length < skip) break;
      if (skip > 0) [rest, skip] = [rest.subarray(skip), 0];
      const end = rest.indexOf('\n');
      if (end < 0) break;
      const line = rest.subarray(0, end).toString();
      rest = rest.subarray(end + 1);
      if (skip === 0) yield line;
      else {
        const order = JSON.parse(line) as Record<string, unknown>;
        orders.push(order);
        skip = Number(order['bytes']);
        yield 'begun';
      }
    }
  }
}

describe('translate_pdf', () => {
  let web: Web;
  let server: Server;
  let services: ToolDependencies;
  let script: Script;
  const orders: Record<string, unknown>[] = [];
  const prompts: Prompt[] = [];
  const models: Spender = {
    ask: (prompt) => {
      prompts.push(prompt);
      return Promise.resolve({
        model: prompt.model ?? '',
        text: prompt.prompt.toUpperCase(),
        finishReason: 'stop',
        latencyMs: 1,
        tokensIn: 1,
        tokensOut: 1,
        cost: undefined,
        costSource: 'pending',
      });
    },
    compare: () => Promise.reject(new Error('not asked for')),
    maxCost: () => {
      throw new Error('not asked for');
    },
  };
  const translate = async (
    input: Record<string, unknown>,
    spender = models,
    urls?: ServiceUrls,
  ): ReturnType<typeof call> =>
    call(
      createTranslatePdfTool({ ...services, ...(urls === undefined ? {} : { urls }) }),
      { url: `${web.url}/two.pdf`, to: 'de', ...input },
      { models: spender },
    );

  beforeAll(async () => {
    server = createServer((request, response) => {
      const heard = linesAfter(request, orders);
      void (async () => {
        await heard.next();
        await script(
          (line) => response.write(typeof line === 'string' ? line : `${JSON.stringify(line)}\n`),
          heard,
          response,
        );
        response.end();
      })().catch(() => {
        response.destroy();
      });
    }).listen(0, '127.0.0.1');
    await once(server, 'listening');
    web = await startWeb({
      '/two.pdf': page('application/pdf', two),
      '/scan.pdf': page('application/pdf', pdf(['', ''])),
      '/long.pdf': page('application/pdf', pdf(Array.from({ length: 40 }, (_none, index) => `Page ${index + 1}`))),
      '/page': page('text/html', '<p>Hello</p>'),
    });
    services = urlServices([web.host], { pdftranslator: `http://127.0.0.1:${(server.address() as AddressInfo).port}` });
  });
  afterAll(async () => {
    server.closeAllConnections();
    server.close();
    await web.close();
    await services.workers.close();
  });
  beforeEach(() => {
    orders.length = 0;
    prompts.length = 0;
    script = (say) => {
      say({ pdf: made });
    };
  });

  it('sends the PDF, translates passages in any order, and returns the new PDF', async () => {
    const answers: string[] = [];
    script = async (say, heard) => {
      say(ask(1));
      say(`${JSON.stringify(ask(2, 'Wörld', 100_000))}\n`.slice(0, 20));
      say(`${JSON.stringify(ask(2, 'Wörld', 100_000))}\n`.slice(20));
      for (let count = 0; count < 2; count += 1) answers.push(String((await heard.next()).value));
      say({ pdf: made });
    };
    const { result, artifact } = await translate({ model: 'alpha-v4-flash' });
    assert.deepEqual(orders, [{ bytes: two.length, lang_in: 'en', lang_out: 'de' }]);
    assert.deepEqual(
      answers.sort().map((line) => JSON.parse(line) as unknown),
      [
        { id: 1, text: 'HELLO', finish_reason: 'stop' },
        { id: 2, text: 'WÖRLD', finish_reason: 'stop' },
      ],
    );
    assert.deepEqual(
      prompts.map(({ model, maxTokens }) => [model, maxTokens]),
      [
        ['alpha-v4-flash', 2_048],
        ['alpha-v4-flash', 4_096],
      ],
    );
    assert.match(prompts[0]?.system ?? '', /^Be exact\.\n\n.*"de" is German/);
    assert.deepEqual(
      [result['passages'], result['from_page'], result['to_page'], result['truncated']],
      [2, 1, 2, false],
    );
    assert.deepEqual([artifact?.fileName, Buffer.from(artifact?.bytes ?? []).toString('base64')], ['two.de.pdf', made]);
  });

  it('sends pages and regions in the form that the translator expects', async () => {
    const cases: [Record<string, unknown>, Record<string, unknown>][] = [
      [
        { to: 'zh', from_page: 2 },
        { lang_out: 'zh-CN', pages: '2-2' },
      ],
      [
        { to: 'zh-Hant', source_lang: 'German' },
        { lang_in: 'de', lang_out: 'zh-TW' },
      ],
      [
        { to: 'pt-BR', url: `${web.url}/long.pdf` },
        { lang_out: 'pt-BR', pages: '1-30' },
      ],
    ];
    for (const [input, order] of cases) {
      orders.length = 0;
      const { result } = await translate(input);
      assert.deepEqual(Object.fromEntries(Object.keys(order).map((name) => [name, orders[0]?.[name]])), order);
      assert.equal(result['truncated'], 'url' in input);
    }
  });

  it('rejects bad input before it contacts a service', async () => {
    const field =
      (name: string) =>
      (error: unknown): boolean =>
        error instanceof Problem && error.errors[0]?.field === name;
    await assert.rejects(translate({ to: 'Klingonese' }), field('to'));
    await assert.rejects(
      translate({ to: 'Arabic' }),
      (error) => field('to')(error) && error instanceof Problem && /right to left/.test(error.errors[0]?.message ?? ''),
    );
    await assert.rejects(translate({ from_page: 2, to_page: 1 }), field('to_page'));
    await assert.rejects(translate({ url: `${web.url}/scan.pdf` }), isProblem('unprocessable', /no text.*ocr_image/));
    await assert.rejects(translate({ url: `${web.url}/page` }), isProblem('unprocessable', /not a PDF/));
    await assert.rejects(translate({}, models, {}), isProblem('service-off', /tools\.pdftranslator\.enabled/));
    assert.deepEqual(orders, []);
  });

  it('reports whether the PDF or the translator is at fault', async () => {
    const cases: [Script, string, RegExp][] = [
      [
        (say) => {
          say({ failed: 'its pages are scans', whose: 'pdf' });
        },
        'unprocessable',
        /cannot be translated: its pages are scans/,
      ],
      [
        (say) => {
          say({ failed: 'BabelDOC made no PDF of it', whose: 'translator' });
        },
        'tool-failed',
        /BabelDOC/,
      ],
      [
        (say) => {
          say('what?\n');
        },
        'tool-failed',
        /invalid message/,
      ],
      [
        (say) => {
          say({ ask: { id: 1, prompt: 'x'.repeat(70_000), system: '', max_tokens: 5 } });
        },
        'tool-failed',
        /invalid message/,
      ],
      [
        (say) => {
          say({ pdf: Buffer.from('<html>').toString('base64') });
        },
        'tool-failed',
        /other than a PDF/,
      ],
      [() => undefined, 'tool-failed', /stopped before it finished/],
      [
        (_say, _heard, response) => {
          response.destroy();
        },
        'tool-failed',
        /cannot be reached|before it finished/,
      ],
      [
        (_say, _heard, response) => {
          response.writeHead(503).end();
        },
        'tool-busy',
        /no free slot/,
      ],
      [
        (_say, _heard, response) => {
          response.writeHead(400).end();
        },
        'tool-failed',
        /status 400/,
      ],
      [
        async (say) => {
          for (let id = 1; id <= 250; id += 1) say(ask(id));
          return new Promise(() => undefined);
        },
        'tool-failed',
        /more than 100 passages per page/,
      ],
    ];
    for (const [one, slug, words] of cases) {
      script = one;
      await assert.rejects(translate({}), isProblem(slug, words));
    }
    await assert.rejects(
      translate({}, models, { pdftranslator: 'http://127.0.0.1:9' }),
      isProblem('tool-failed', /cannot be reached/),
    );
  });

  it('retries a failed model call once, then reports its problem after the calls in progress have ended', async () => {
    script = async (say) => {
      say(ask(1));
      say(ask(2));
      return new Promise(() => undefined);
    };
    const quota = { slug: 'quota-exhausted', status: 402, title: 'No quota', description: '' };
    const slow = Promise.withResolvers<never>();
    let ended = false;
    const failing: Spender = {
      ...models,
      ask: async (prompt) => {
        prompts.push(prompt);
        if (prompts.length === 1) throw new Problem(quota, 'the free quota is used up');
        setTimeout(() => {
          ended = true;
          slow.reject(new Error('late'));
        }, 100);
        return slow.promise;
      },
    };
    await assert.rejects(translate({}, failing), isProblem('quota-exhausted', /used up/));
    assert.equal(ended, true);

    prompts.length = 0;
    script = async (say, heard) => {
      say(ask(1));
      await heard.next();
      say({ pdf: made });
    };
    const stumbling: Spender = {
      ...models,
      ask: async (prompt) => {
        if (prompts.length > 0) return models.ask(prompt);
        prompts.push(prompt);
        throw new Problem({ ...quota, slug: 'model-failed', status: 502 }, 'stumbled');
      },
    };
    assert.equal((await translate({}, stumbling)).result['passages'], 1);
  });
});
