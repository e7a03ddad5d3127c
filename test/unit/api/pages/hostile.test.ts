// What strangers write is text on every page: titles, repositories, messages, logs, answers of models.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import { sampleApp, sampleApps, sampleServices } from '../../../support/api/sample.ts';
import { send } from '../../../support/api/send.ts';
import { checkPage } from '../../../support/pages/check.ts';
import { benchDetails, guideRecords, createProject, rankAnswer } from '../../../support/pages/records.ts';
import { browserHeaders, createForm, samplePages } from '../../../support/pages/sample.ts';
import { rejectedStatus } from '../../../support/pages/status.ts';

const evil = `"><script>alert(1)</script><img src=x onerror='alert(2)'>&lt;b&gt;\${x}</textarea></title>\u202eevil`;

/** The same record with every text in it replaced, but those that name it or choose among known ones. */
function poisoned<Value>(
  value: Value,
  kept: readonly string[] = ['slug', 'state', 'category', 'updated', 'since', 'stars_at'],
): Value {
  if (typeof value === 'string') return evil as Value;
  if (Array.isArray(value)) return value.map((one: unknown) => poisoned(one, kept)) as Value;
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, one]) => [
      key,
      kept.includes(key) ? (one as unknown) : poisoned(one as unknown, kept),
    ]),
  ) as Value;
}

const kept = ['phase', 'commit', 'number', 'severity', 'result', 'since', 'startedAt', 'finishedAt'];
const status = poisoned(rejectedStatus, [...kept, 'rule']);
/** A rule is no longer than this. */
const evilRule = `"><script>alert(1)</script>`;
const { apps } = sampleApps(
  sampleApp('chat', undefined, {
    ...status,
    rejection: { ...status.rejection, rule: evilRule, message: evil, fix: evil },
    findings: (status.findings ?? []).map((found) => ({ ...found, rule: evilRule })),
  }),
);
const { app } = samplePages({
  projects: [poisoned(createProject('chat-ui-1', { state: 'rejected' }))],
  bench: benchDetails
    .map((one) => poisoned(one, ['slug', 'updated']))
    .map((one) => ({
      ...one,
      pairs: one.pairs.map((pair) => ({ ...pair, verdict: 'b' as const })),
    })),
  guides: guideRecords.map((one) => poisoned(one)),
  rank: poisoned(rankAnswer),
  services: sampleServices({ apps }),
  compare: () =>
    Promise.resolve({
      results: [
        { model: evil, answer: evil, cost_usd: 0.001, charged_usd: 0, cost_source: 'billed', latency_ms: 12 },
        { model: 'beta-K3', answer: '', charged_usd: 0, cost_source: 'none', latency_ms: 1, error: evil },
      ],
      summary: {
        cheapest: evil,
        fastest: evil,
        total_cost_usd: 0.001,
        total_charged_usd: 0,
        cost_spread: `${evil}x between cheapest and priciest`,
      },
    }),
});

function assertHarmless(html: string, path: string): void {
  assert.deepEqual(
    checkPage(html).faults.filter((fault) => !/^(id|field) /.test(fault)),
    [],
    path,
  );
  assert.doesNotMatch(html, /<script>|<img src=x|<b>/, path);
  assert.ok(html.includes('&lt;script&gt;alert(1)'), `${path} shows it as text`);
}

const pages = [
  '/',
  '/apps/chat-ui-1',
  '/bench',
  '/bench/chat-ui-1',
  '/guides',
  '/guides/compare-llm-cost-for-a-prompt',
  '/rank',
  '/status/octo/chat',
];
for (const path of pages) {
  for (const language of ['en', 'zh']) {
    test(`${path} in ${language}`, async () => {
      const answer = await send(app, `${path}?lang=${language}`, { headers: browserHeaders });
      const html = await answer.text();
      assert.equal(answer.status, 200, html.slice(0, 400));
      assertHarmless(html, path);
    });
  }
}

test('returns a visitor’s input as text', async () => {
  const search = await (await send(app, `/?q=${encodeURIComponent(evil)}`, { headers: browserHeaders })).text();
  assertHarmless(search, 'search');
  const refused = await send(app, '/submit', createForm({ repo: evil, contact: evil, note: evil }));
  assert.equal(refused.status, 400);
  assertHarmless(await refused.text(), 'submit');
  assertHarmless(await (await send(app, '/compare', createForm({ prompt: evil }))).text(), 'compare');
  const missing = await send(app, `/status/${encodeURIComponent('<script>alert(1)<')}/x`, { headers: browserHeaders });
  assert.doesNotMatch(await missing.text(), /<script>alert/);
});

test('links a stranger’s address only if it leads to the web', async () => {
  const script = samplePages({
    projects: [createProject('chat-ui-1', { repo: 'javascript:alert(1)', url: 'javascript:alert(2)' })],
  });
  const html = await (await send(script.app, '/apps/chat-ui-1', { headers: browserHeaders })).text();
  assert.doesNotMatch(html, /href="javascript/);
});

test('ignores an unknown language, cursor or category', async () => {
  for (const query of ['lang=xx', 'lang=en&lang=zh', 'lang=__proto__', 'category=constructor', 'q=a&q=b']) {
    const answer = await send(app, `/?${query}`, { headers: browserHeaders });
    assert.equal(answer.status, 200, query);
  }
});
