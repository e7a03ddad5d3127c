// The figures of an app on the command line: for a person without what is empty, for a program as they are.
import assert from 'node:assert/strict';
import { afterAll, beforeAll, test } from 'vitest';
import { createAuthorKey } from '../../../../lib/ownership-file.ts';
import { type LoopbackApi, MoorageHome, type ProgramRun, startLoopbackApi } from '../../../support/moorage-program.ts';

const key = createAuthorKey();
const home = new MoorageHome();
let api: LoopbackApi;

beforeAll(async () => {
  api = await startLoopbackApi({
    'GET /api/projects/hello': { slug: 'hello', status_url: 'https://moorage.test/api/submit-status/octo/hello' },
    'GET /api/submit-status/octo/hello': { status: 'live', slug: 'hello', repo: 'https://git.test/octo/hello' },
  });
});
afterAll(() => {
  api.close();
  home.remove();
});

async function run(args: readonly string[]): Promise<ProgramRun> {
  return home.run(args, { environment: { MOORAGE_API: api.url, MOORAGE_KEY: key } });
}

test('figures shows the totals and the hours in which something happened, and a hyphen for what is not known', async () => {
  const nothing = { requests: 0, errors_4xx: 0, errors_5xx: 0, latency_ms: null, cpu_cores: 0, memory_mib: 0 };
  const free = { model_cost_usd: '0', model_costs_pending: 0 };
  const busy = { requests: 3, errors_4xx: 1, errors_5xx: 0, latency_ms: 120.5, cpu_cores: 0.25, memory_mib: 64 };
  const paid = { model_cost_usd: '0.000000000001', model_costs_pending: 2 };
  const answer = {
    ...{ slug: 'hello', range: '7d', bucket: 'hour' },
    ...{ since: '2026-11-01T07:00:00.000Z', until: '2026-11-01T09:30:00.000Z' },
    buckets: [
      { start: '2026-11-01T07:00:00.000Z', end: '2026-11-01T08:00:00.000Z', ...nothing, ...free },
      { start: '2026-11-01T08:00:00.000Z', end: '2026-11-01T09:00:00.000Z', ...busy, ...paid },
    ],
    earnings: [
      { day: '2026-10-31', earnings_usd: '-0.5' },
      { day: '2026-11-01', earnings_usd: null },
    ],
    total: { ...busy, ...paid, cpu_cores: null, memory_mib: null, earnings_usd: '-0.5' },
    unmeasured: { compute: 'The operator has not reported yet what this app uses.' },
  };
  api.answers['GET /api/apps/hello/figures'] = answer;
  const { code, stdout, stderr } = await run(['figures', 'hello', '--range', '7d']);
  assert.deepEqual([code, stderr], [0, 'The operator has not reported yet what this app uses.\n']);
  const request = api.requests.at(-1);
  assert.deepEqual([request?.line, request?.authorization], ['GET /api/apps/hello/figures?range=7d', `Bearer ${key}`]);
  assert.equal(
    stdout,
    `range         7d
requests      3
errors 4xx    1
errors 5xx    0
mean latency  120.5 ms
mean CPU      -
mean memory   -
model cost    $0.000000000001 and 2 not known yet
earnings      -$0.5 (2026-10-31)

TIME                  REQUESTS  4XX  5XX  LATENCY   CORES  MEMORY  MODEL COST
2026-11-01 08:00:00Z  3         1    0    120.5 ms  0.25   64 MiB  $0.000000000001 and 2 not known yet
`,
  );
  const json = await run(['figures', 'hello', '--range', '7d', '--json']);
  assert.deepEqual([json.code, JSON.parse(json.stdout), json.stderr], [0, answer, '']);
});

test('figures of an app that is too young say when they begin', async () => {
  const none = { requests: null, errors_4xx: null, errors_5xx: null, latency_ms: null, cpu_cores: null };
  api.answers['GET /api/apps/hello/figures'] = {
    ...{ range: '24h', bucket: 'hour', since: '2026-11-01T10:00:00.000Z', buckets: [], earnings: [] },
    total: { ...none, memory_mib: null, model_cost_usd: null, model_costs_pending: null, earnings_usd: null },
  };
  const { code, stdout } = await run(['figures', 'hello']);
  assert.equal(code, 0);
  assert.match(stdout, /^requests +-$/m);
  assert.match(stdout, /begin at 2026-11-01 10:00:00Z, with the first full hour/);
  assert.equal(api.requests.at(-1)?.line, 'GET /api/apps/hello/figures');
});
