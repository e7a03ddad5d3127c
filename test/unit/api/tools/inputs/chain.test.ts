// Calls that go on from the file of an earlier call, on an installation whose own address no guard would let through.
import assert from 'node:assert/strict';
import { randomBytes, randomUUID } from 'node:crypto';
import sharp from 'sharp';
import { afterAll, beforeAll, test } from 'vitest';
import { z } from 'zod';
import { createConvertImageTool } from '../../../../../api/tools/builtin/convert-image/convert-image.ts';
import { createMemoryTool } from '../../../../../api/tools/builtin/memory/memory.ts';
import { createRenderDiagramTool } from '../../../../../api/tools/builtin/render-diagram/render-diagram.ts';
import { createWorkers } from '../../../../../api/tools/engine/workers/pool.ts';
import { migratedDatabase } from '../../../../support/ledger/snapshot.ts';
import { json } from '../../../../support/models/sample.ts';
import { sampleToolApp, type ToolSample } from '../../../../support/tools/sample.ts';

const answer = z.looseObject({
  result: z.looseObject({}),
  artifact: z.object({ url: z.string(), media_type: z.string() }).optional(),
});
const workers = createWorkers();
let sample: ToolSample;
beforeAll(async () => {
  sample = await sampleToolApp({
    environment: { DATABASE_URL: migratedDatabase },
    baseUrl: 'http://localhost:8080',
    make: (services) => {
      const local = { ...services, workers };
      return [createRenderDiagramTool(local), createConvertImageTool(local), createMemoryTool(local)];
    },
  });
});
afterAll(async () => {
  await sample.stop();
  await workers.close();
});

async function call(path: string, init?: RequestInit): Promise<z.output<typeof answer>> {
  const response = await sample.request(path, init);
  const body: unknown = await response.json();
  assert.equal(response.status, 200, JSON.stringify(body));
  return answer.parse(body);
}
const from = (address: string): RequestInit => ({ headers: { 'x-forwarded-for': address } });

test('converts a picture that another tool drew, by GET and by POST, by its URL or its id', async () => {
  const drawn = await call('/t/render_diagram?kind=graphviz&source=digraph{a-%3Eb}&format=png', from('192.0.2.7'));
  const url = drawn.artifact?.url ?? '';
  assert.match(url, /^http:\/\/localhost:8080\/t\/artifacts\//);
  const id = url.split('/').at(-1) ?? '';
  const size = { width: drawn.result['width'], height: drawn.result['height'] };
  for (const given of [{ artifact: url }, { artifact: id }, { url }, { artifact_url: url }]) {
    const query = new URLSearchParams({ ...given, format: 'jpg' }).toString();
    // Whoever has the URL may read the file, as by GET.
    for (const made of [
      await call(`/t/convert_image?${query}`, from('192.0.2.7')),
      await call('/t/convert_image', json({ ...given, format: 'jpg' })),
    ]) {
      assert.equal(made.artifact?.media_type, 'image/jpeg');
      const { width, height } = made.result;
      assert.deepEqual({ width, height }, size);
    }
  }
});

test('accepts a file of 3 MB as data, and rejects a larger one by name', async () => {
  // Noise, which no format makes smaller.
  const noise = (pixels: number): Promise<Buffer> =>
    sharp(randomBytes(pixels * 3 * 1_000), { raw: { width: 1_000, height: pixels, channels: 3 } })
      .png()
      .toBuffer();
  const fits = await noise(1_040);
  assert.ok(fits.length > 3_100_000 && fits.length <= 3 * 1_048_576, String(fits.length));
  const made = await call('/t/convert_image', json({ data: fits.toString('base64'), format: 'jpeg', width: 100 }));
  assert.equal(made.result['width'], 100);
  const larger = await sample.request(
    '/t/convert_image',
    json({ data: (await noise(1_060)).toString('base64'), format: 'jpeg' }),
  );
  assert.equal(larger.status, 400);
  assert.match(await larger.text(), /"field":"data"/);
});

test("rejects a local address that is not a tool's file, and an expired file", async () => {
  const refusal = async (query: Record<string, string>): Promise<unknown[]> => {
    const response = await sample.request(`/t/convert_image?${new URLSearchParams(query).toString()}`);
    const { errors } = z
      .looseObject({ errors: z.array(z.looseObject({ in: z.string(), field: z.string() })) })
      .parse(await response.json());
    return [response.status, errors[0]?.in, errors[0]?.field];
  };
  assert.deepEqual(await refusal({ url: 'http://localhost:8080/api/models' }), [422, 'query', 'url']);
  assert.deepEqual(await refusal({ artifact: 'http://localhost:8080/api/models' }), [400, 'query', 'artifact']);
  assert.deepEqual(await refusal({ artifact: 'A'.repeat(22) }), [404, 'query', 'artifact']);
  assert.deepEqual(await refusal({}), [400, 'query', 'url']);
});

test('stores JSON in a body as JSON, and text in a query as text', async () => {
  const session = randomUUID();
  const value = { done: ['a', 1, null], ok: true };
  await call(`/t/memory?s=${session}`, json({ action: 'set', key: 'k', value }));
  assert.deepEqual((await call(`/t/memory?s=${session}&action=get&key=k`)).result['value'], value);
  await call(`/t/memory?s=${session}`, json({ action: 'set', key: 'k', value: '{"a":1}' }));
  assert.equal((await call(`/t/memory?s=${session}&action=get&key=k`)).result['value'], '{"a":1}');
  assert.equal((await sample.request('/t/memory', json({ action: 'set', key: 'k', s: session }))).status, 400);
});
