// Another agent runs tools through the tool service that /t uses: the same reading, the same answer, the same problems.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import { z } from 'zod';
import { defineTool } from '../../../../../api/tools/tool.ts';
import { echoTool, silentTool } from '../../../../support/discovery/sample.ts';
import { sampleToolApp } from '../../../../support/tools/sample.ts';

const part = z.looseObject({
  data: z.unknown().optional(),
  raw: z.string().optional(),
  url: z.string().optional(),
  text: z.string().optional(),
  filename: z.string().optional(),
});
type Part = z.output<typeof part>;
const drawTool = defineTool({
  name: 'draw',
  title: 'Draw',
  description: 'Draws so many bytes.',
  input: z.strictObject({ bytes: z.int().describe('How many') }),
  output: z.object({ drawn: z.int().describe('How many were drawn') }),
  example: { bytes: 3 },
  price: '0',
  openWorld: false,
  artifacts: ['image/png'],
  run: ({ bytes }) =>
    Promise.resolve({
      result: { drawn: bytes },
      artifact: { bytes: new Uint8Array(bytes), mediaType: 'image/png', fileName: 'drawing.png' },
    }),
});

function server(): (tool: string, given?: object) => Promise<{ parts: Part[]; state: string | undefined }> {
  const started = sampleToolApp({ tools: [echoTool, silentTool, drawTool] });
  return async (tool, given = {}) => {
    const message = { messageId: '1', role: 'ROLE_USER', parts: [{ data: { tool, arguments: given } }] };
    const { request } = await started;
    const answer = await request('/a2a', {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'SendMessage', params: { message } }),
    });
    const parts = z.array(part);
    const { result } = z
      .object({
        result: z.looseObject({
          message: z.looseObject({ parts }).optional(),
          task: z
            .looseObject({ status: z.looseObject({ state: z.string(), message: z.looseObject({ parts }) }) })
            .optional(),
        }),
      })
      .parse(await answer.json());
    return {
      parts: result.message?.parts ?? result.task?.status.message.parts ?? [],
      state: result.task?.status.state,
    };
  };
}

test('aliases are read, and the answer is the envelope of /t', async () => {
  const {
    parts: [only],
  } = await server()('echo', { message: 'ahoy', times: 2 });
  const envelope = z
    .looseObject({
      tool: z.literal('echo'),
      result: z.unknown(),
      cost_usd: z.literal(0),
      latency_ms: z.int(),
      request_id: z.string(),
    })
    .parse(only?.data);
  assert.deepEqual(envelope.result, { said: ['ahoy', 'ahoy'] });
});

test('a small file comes inside, a larger one too where no files are kept, none that is very large', async () => {
  const [, small] = (await server()('draw', { bytes: 3 })).parts;
  assert.deepEqual([small?.raw, small?.filename], ['AAAA', 'drawing.png']);
  const [, large] = (await server()('draw', { bytes: 100_000 })).parts;
  assert.deepEqual([large?.raw?.length, large?.url], [133_336, undefined]);
  assert.equal((await server()('draw', { bytes: 9_000_000 })).parts.length, 1);
});

test('what is wrong is named: a field, a tool, a service that is off', async () => {
  for (const [tool, given, says] of [
    ['echo', { times: 99 }, /times/],
    ['ecko', {}, /Did you mean echo/],
    ['listen', { url: 'https://example.org/x.mp3' }, /tools\.speech\.enabled/],
  ] as const) {
    const { parts, state } = await server()(tool, given);
    assert.match(state ?? '', tool === 'listen' ? /FAILED/ : /REJECTED/);
    assert.match(JSON.stringify(parts), says);
  }
});
