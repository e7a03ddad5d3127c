// Twelve jobs that are done with tools alone, whatever the protocol: each is something that a user asked an agent for.
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { demoNotice } from '../../../api/models/router/demo-router.ts';
import { lookAtDeck, lookAtPicture } from './looks.ts';
import type { Job, Site } from './place.ts';
import { expectCost, readFileOfResult, type CallTool, type Envelope } from './results.ts';

const flow = `flowchart TD
  A[Order comes in] --> B{In stock?}
  B -- yes --> C[Pack it]
  B -- no --> D[Order from supplier]
  D --> C
  C --> E((Ship))`;
const outline = `# Harbour report 2026

## Arrivals
- 412 ships, 9 % more than last year
- 38 of them after midnight

## Next steps
1. Dredge the northern channel
2. Hire two pilots`;

const getField = ({ result }: Envelope, name: string): unknown => result?.[name];
const getArtifactUrl = ({ artifact }: Envelope): string => artifact?.url ?? assert.fail('no file');

export function toolJobs(place: Site, through: CallTool): Job[] {
  const call: CallTool = async (name, fields) => {
    const result = await through(name, fields);
    expectCost(result);
    return result;
  };
  const picture = async (result: Envelope): Promise<string> => lookAtPicture(await readFileOfResult(result, place));
  return [
    {
      name: 'a flow chart as a picture',
      run: async () => picture(await call('render_diagram', { code: flow, language: 'mermaid', format: 'png' })),
    },
    {
      name: 'a bar chart of numbers',
      run: async () =>
        picture(
          await call('make_chart', {
            type: 'bar',
            labels: ['Mon', 'Tue', 'Wed'],
            values: [3, 9, 4],
            title: 'Arrivals',
          }),
        ),
    },
    {
      name: 'a deck from an outline, as a PDF, whose text is read again',
      run: async () => {
        const deck = await call('make_slides', { markdown: outline });
        const slides = await lookAtDeck(await readFileOfResult(deck, place));
        assert.match(slides.join('\n'), /Harbour report 2026[^]*412 ships[^]*northern channel/);
        const pdf = await call('convert_to_pdf', { artifact: getArtifactUrl(deck) });
        const read = await call('extract_pdf', { artifact: getArtifactUrl(pdf) });
        assert.match(JSON.stringify(read.result), /Arrivals[^]*northern channel/);
        return `${slides.length} slides, ${JSON.stringify(read.result).length} characters of result`;
      },
    },
    {
      name: 'a sum that is worked out in code',
      run: async () => {
        const result = await call('run_code', { code: '[...Array(101).keys()].reduce((sum, n) => sum + n * n, 0)' });
        assert.match(JSON.stringify(result.result), /338350/);
        return '338350';
      },
    },
    {
      name: 'a sentence corrected',
      run: async () => {
        const corrected = getField(await call('check_grammar', { text: 'She go to school every days.' }), 'corrected');
        assert.match(String(corrected), /She goes to school every day/);
        return String(corrected);
      },
    },
    {
      name: 'a note kept, read and deleted',
      run: async () => {
        // Without an API key, what is kept belongs to whoever knows the name of the session.
        const note = { key: 'berths', s: `trial-${randomUUID()}` };
        await call('memory', { action: 'set', ...note, value: { home: 'Hamburg', berths: [4, 2] } });
        const { value } = (await call('memory', { action: 'get', ...note })).result ?? {};
        assert.deepEqual(value, { home: 'Hamburg', berths: [4, 2] });
        assert.equal(getField(await call('memory', { action: 'delete', ...note }), 'found'), true);
        return JSON.stringify(value);
      },
    },
    {
      name: 'a document checked against its schema',
      run: async () => {
        const schema = { type: 'object', properties: { port: { type: 'integer' } }, required: ['port'] };
        const result = await call('validate_json', { json: { port: '80' }, schema });
        assert.equal(getField(result, 'valid'), false);
        assert.match(JSON.stringify(result.result), /port/);
        return 'port must be an integer';
      },
    },
    {
      name: 'a question to a model',
      run: async () => {
        const result = await call('ask_model', { prompt: 'Why do ships float?', max_tokens: 60 });
        assert.ok(String(getField(result, 'answer')).startsWith(demoNotice));
        assert.ok((result.cost_usd ?? 0) > 0);
        return `${String(result.cost_usd)} USD`;
      },
    },
    {
      name: 'three models compared',
      run: async () => {
        const result = await call('compare_models', { prompt: 'Why do ships float?', max_tokens: 60 });
        assert.equal(JSON.stringify(result.result).split(demoNotice).length, 4);
        return `${String(result.cost_usd)} USD`;
      },
    },
    {
      name: 'a diagram made smaller, as WebP',
      run: async () => {
        const made = await call('render_diagram', { code: 'a -> b: "hello"', language: 'd2', format: 'png' });
        return picture(await call('convert_image', { artifact: getArtifactUrl(made), format: 'webp', width: 120 }));
      },
    },
    {
      name: 'text read from a picture',
      run: async () => {
        const made = await call('render_diagram', {
          code: 'digraph { "HARBOUR MASTER" }',
          language: 'dot',
          format: 'png',
        });
        const { text } = (await call('ocr_image', { artifact: getArtifactUrl(made) })).result ?? {};
        assert.match(String(text), /HARBOUR MASTER/);
        return String(text).trim();
      },
    },
    {
      name: 'a call that was wrong, put right by what the refusal says',
      run: async () => {
        const said = await through('make_chart', { type: 'bar', labels: ['a', 'b'], values: [1] }).then(
          () => assert.fail('drawn'),
          (error: unknown) => String(error),
        );
        assert.match(said, /labels|values/);
        return picture(await call('make_chart', { type: 'bar', labels: ['a', 'b'], values: [1, 2] }));
      },
    },
  ];
}
