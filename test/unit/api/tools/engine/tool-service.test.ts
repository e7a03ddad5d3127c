// The fields that the problem of a failed job names are where the caller sent them.
import assert from 'node:assert/strict';
import { afterAll, beforeAll, test } from 'vitest';
import { z } from 'zod';
import { createValidationProblem } from '../../../../../api/http/index.ts';
import { defineTool } from '../../../../../api/tools/tool.ts';
import { migratedDatabase } from '../../../../support/ledger/snapshot.ts';
import { json } from '../../../../support/models/sample.ts';
import { sampleToolApp, type ToolSample } from '../../../../support/tools/sample.ts';

const refusing = defineTool({
  name: 'refusing',
  title: 'Refusing',
  description: 'Of the tests.',
  price: '0',
  openWorld: false,
  example: { to: 'a' },
  long: true,
  input: z.strictObject({ to: z.string().describe('Any') }),
  output: z.object({}),
  run: ({ to }) => {
    throw createValidationProblem([{ in: 'query', field: 'to', message: `is ${to}`, fix: 'Send another one.' }]);
  },
});

let sample: ToolSample;
beforeAll(async () => {
  sample = await sampleToolApp({
    environment: { DATABASE_URL: migratedDatabase },
    tools: [refusing],
    jobTimes: { pollMs: 20 },
  });
});
afterAll(() => sample.stop());

const problem = z.object({
  status: z.number(),
  detail: z.string(),
  job: z.string(),
  errors: z.array(z.object({ in: z.string(), field: z.string(), fix: z.string() })),
});

async function refused(path: string, init?: RequestInit): Promise<z.output<typeof problem>> {
  return problem.parse(await (await sample.request(path, init)).json());
}

for (const { name, path, init, part, detail } of [
  { name: 'GET', path: '/t/refusing?to=a&wait=30', part: 'query', detail: 'Query parameter "to" is a.' },
  {
    name: 'POST',
    path: '/t/refusing',
    init: json({ to: 'b', wait: 30 }),
    part: 'body',
    detail: 'Body field "to" is b.',
  },
]) {
  test(`a job by ${name} that fails names its fields in the ${part}, and as arguments when polled`, async () => {
    const first = await refused(path, init);
    const error = { in: part, field: 'to', fix: 'Send another one.' };
    assert.deepEqual([first.status, first.detail, first.errors], [400, detail, [error]]);
    const polled = await refused(`/t/refusing?job=${first.job}`);
    assert.deepEqual([polled.status, polled.errors], [400, [{ ...error, in: 'argument' }]]);
    assert.match(polled.detail, /^Argument "to" is [ab]\.$/);
  });
}
