// Tools whose backing service is off: input that is wrong is refused first, by its field, and only then the service is named.
import assert from 'node:assert/strict';
import { afterAll, beforeAll, describe, it } from 'vitest';
import { z } from 'zod';
import { createBuiltinTools } from '../../../../../api/tools/builtin/all.ts';
import { migratedDatabase } from '../../../../support/ledger/snapshot.ts';
import { json } from '../../../../support/models/sample.ts';
import { sampleToolApp, type ToolSample } from '../../../../support/tools/sample.ts';

const problem = z.looseObject({
  type: z.string(),
  errors: z.array(z.looseObject({ field: z.string(), fix: z.string() })).optional(),
});

type Input = Readonly<Record<string, unknown>>;

const files: readonly [Input, string][] = [
  [{ url: '0' }, 'url'],
  [{ url: 'null' }, 'url'],
  [{ url: 'ftp://example.org/a' }, 'url'],
  [{ url: 'https://' }, 'url'],
  [{ url: 'https://[example' }, 'url'],
  [{}, 'url'],
  [{ url: 'https://example.org/', data: 'AAAA' }, 'data'],
  [{ data: '0' }, 'data'],
  [{ data: 'data:no-comma' }, 'data'],
  [{ artifact: '0' }, 'artifact'],
  [{ artifact: 'https://example.org/' }, 'artifact'],
];

/** Input that is wrong, with the field to name, of each tool that needs a service. */
const wrong: Readonly<Record<string, readonly (readonly [Input, string])[]>> = {
  web_search: [
    [{ query: '!!g lamps' }, 'query'],
    [{ query: 'lamps', language: 'Klingon' }, 'language'],
  ],
  deep_research: [[{ question: 'why' }, 'question']],
  screenshot: files.slice(0, 6),
  convert_to_pdf: [
    ...files.filter(([input]) => Object.keys(input).length > 0),
    [{}, 'html'],
    [{ html: 'a', markdown: 'b' }, 'markdown'],
    [{ html: 'a', pages: 'all' }, 'pages'],
  ],
  transcribe_audio: [...files, [{ url: 'https://example.org/a.mp3', language: 'Klingon' }, 'language']],
  translate_pdf: [
    ...files.map(([input, field]) => [{ ...input, to: 'de' }, field] as const),
    [{ url: 'https://example.org/a.pdf', to: 'Klingon' }, 'to'],
    [{ url: 'https://example.org/a.pdf', to: 'Arabic' }, 'to'],
    [{ url: 'https://example.org/a.pdf', to: 'de', from: 'Klingon' }, 'from'],
    [{ url: 'https://example.org/a.pdf', to: 'de', from_page: 2, to_page: 1 }, 'to_page'],
  ],
};

describe('tools whose service is off', () => {
  let sample: ToolSample;
  let needing: string[] = [];
  beforeAll(async () => {
    sample = await sampleToolApp({
      environment: { DATABASE_URL: migratedDatabase },
      make: (services) => {
        const tools = createBuiltinTools(services);
        needing = tools.filter(({ needs }) => needs !== undefined).map(({ name }) => name);
        return tools;
      },
    });
  });
  afterAll(() => sample.stop());

  it('are all covered', () => {
    assert.deepEqual(needing.toSorted(), Object.keys(wrong).toSorted());
  });

  for (const [name, cases] of Object.entries(wrong))
    for (const [input, field] of cases)
      it(`${name} rejects ${JSON.stringify(input)} because of ${field}, by POST and by GET`, async () => {
        const query = new URLSearchParams(
          Object.entries(input).map(([key, value]): [string, string] => [key, String(value)]),
        );
        for (const response of [
          await sample.request(`/t/${name}`, json(input)),
          await sample.request(`/t/${name}?${query.toString()}`),
        ]) {
          const { type, errors = [] } = problem.parse(await response.json());
          assert.deepEqual(
            [response.status, type.split('/').at(-1), errors.map((error) => error.field)],
            [400, 'invalid-request', [field]],
          );
          assert.notEqual(errors[0]?.fix, '');
        }
      });

  it('report that they are off for valid input, including pasted addresses', async () => {
    for (const [name, input] of [
      ['web_search', { query: 'lamps' }],
      ['screenshot', { url: 'https://de.wikipedia.org/wiki/Köln' }],
      ['screenshot', { url: ' HTTPS://example.org/a b?c=d e\n' }],
      ['convert_to_pdf', { data: 'data:,hello' }],
      ['convert_to_pdf', { artifact: '/t/artifacts/AAAAAAAAAAAAAAAAAAAAAA' }],
      ['transcribe_audio', { artifact: 'AAAAAAAAAAAAAAAAAAAAAA', language: 'German' }],
      ['transcribe_audio', { artifact: 'https://moorage.localhost/t/artifacts/AAAAAAAAAAAAAAAAAAAAAA?x=1#y' }],
    ] as const) {
      const response = await sample.request(`/t/${name}`, json(input));
      const { type } = problem.parse(await response.json());
      assert.deepEqual([response.status, type.split('/').at(-1)], [503, 'service-off'], JSON.stringify(input));
    }
  });
});
