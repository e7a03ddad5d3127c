// Statements over HTTP: who may read them, what is in them, disputes, and what the operator's program does.
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { afterAll, beforeAll, test } from 'vitest';
import { z } from 'zod';
import { readAuthorship } from '../../../../../api/apps/hosted-apps.ts';
import type { Database } from '../../../../../api/billing/database/database.ts';
import { parseMoney } from '../../../../../api/billing/ledger/money.ts';
import { recordUses } from '../../../../../api/accounting/metering/usage-store.ts';
import { readPriceList } from '../../../../../api/billing/prices.ts';
import { adjust, CorrectionError, refund, answerDispute } from '../../../../../api/accounting/revenue/corrections.ts';
import { listAuthorNews } from '../../../../../api/accounting/revenue/author-news.ts';
import { noteAuthors, postAppDay, statementView } from '../../../../../api/accounting/revenue/statement.ts';
import { closeMonths } from '../../../../../api/accounting/revenue/revenue-queries.ts';
import { hashAuthorKey, findAuthorKeyHashes, createAuthorKey } from '../../../../../lib/ownership-file.ts';
import { sampleAppsServer, type AppsSample } from '../../../../support/apps/sample.ts';

const key = createAuthorKey();
const prices = readPriceList(undefined, 0);
const today = new Date().toISOString().slice(0, 10);
const month = today.slice(0, 7);
const author = 'git.test/octo';
let sample: AppsSample;
let database: Database;

beforeAll(async () => {
  sample = await sampleAppsServer();
  database = sample.models.ledger.get().database;
  const app = await sample.host(
    'mine',
    (_request, response) => response.end('ok'),
    (one) => ({ ...one, status: { ...one.status, authorKeys: [hashAuthorKey(key, 'git.test/octo/mine')] } }),
  );
  await noteAuthors(database, [readAuthorship(app)]);
  await recordUses(
    database,
    ['a', 'b', 'c'].map((id, index) => ({
      id: `visit-${id}`,
      kind: 'visit',
      app: 'mine',
      caller: `visitor-${index}`,
      at: new Date(Date.parse(`${today}T00:00:00Z`) + index),
      class: id === 'c' ? 'asset' : 'use',
    })),
  );
  await postAppDay(database, { app: 'mine', day: today, prices, budget: parseMoney('1000') });
});
afterAll(() => sample.stop());

const get = (path: string, headers: Record<string, string> = { authorization: `Bearer ${key}` }): Promise<Response> =>
  sample.request(path, { headers });
const post = (path: string, body: unknown): Promise<Response> =>
  sample.request(path, {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: `Bearer ${key}` },
    body: JSON.stringify(body),
  });
const problem = z.looseObject({ type: z.string(), detail: z.string() });
async function refusal(response: Response): Promise<[number, string, string]> {
  const { type, detail } = problem.parse(await response.json());
  return [response.status, type.slice(type.lastIndexOf('/') + 1), detail];
}
const statement = async (of = month): Promise<z.output<typeof statementView>> =>
  statementView.parse(await (await get(`/api/authors/octo/statement?month=${of}`)).json());

test('everybody sees whose an app is, and how its author gets a key', async () => {
  const found = await get('/api/authors/Octo', {});
  assert.deepEqual(z.looseObject({ apps: z.unknown(), has_key: z.boolean() }).parse(await found.json()).apps, [
    { slug: 'mine', id: 'mine', share: 0.7 },
  ]);
  const issued = z
    .object({ key: z.string(), file: z.string(), line: z.string(), message: z.string() })
    .parse(await (await sample.request('/api/authors/octo/keys', { method: 'POST' })).json());
  assert.equal(issued.file, '.moorage-owner');
  assert.equal(
    issued.line,
    `moorage-author-sha256-${createHash('sha256').update(`moorage author line\ngit.test/octo/mine\n${issued.key}`).digest('hex')}`,
  );
  const [status, type, detail] = await refusal(
    await get('/api/authors/octo/statement', { authorization: `Bearer ${issued.key}` }),
  );
  assert.deepEqual([status, type], [401, 'author-key-required'], 'it is worth nothing before it is committed');
  assert.match(detail, /\.moorage-owner/);
});

test('attack: without a key, with one of a model router or of another author, nobody reads a statement', async () => {
  const wrong: Record<string, string>[] = [
    {},
    { authorization: 'Bearer sk-123456789012345678' },
    { authorization: `Bearer ${createAuthorKey()}` },
    { authorization: 'Basic x' },
  ];
  for (const path of ['statement', 'statements', 'lines/1/events'])
    for (const headers of wrong) {
      const response = await get(`/api/authors/octo/${path}`, headers);
      assert.equal(response.status, 401, path);
      assert.equal(response.headers.get('www-authenticate'), 'Bearer realm="moorage author"');
    }
  const [status, type] = await refusal(await get('/api/authors/nobody/statement'));
  assert.deepEqual([status, type], [404, 'unknown-author']);
});

test('attack: the line of a template opens no statement of a fork, nor one of the earlier form, which names no repository', async () => {
  const issued = z
    .looseObject({ key: z.string(), line: z.string() })
    .parse(await (await sample.request('/api/authors/octo/keys', { method: 'POST' })).json());
  const headers = { authorization: `Bearer ${issued.key}` };
  const unbound = createHash('sha256').update(issued.key).digest('hex');
  // Each fork has the file of the template, and the author of the template has the key.
  for (const [owner, keys] of [
    ['victim', findAuthorKeyHashes(issued.line)],
    ['earlier', [unbound]],
  ] as const)
    await sample.host(
      `fork-${owner}`,
      (_request, response) => response.end('ok'),
      (one) => ({
        ...one,
        spec: { ...one.spec, source: { ...one.spec.source, repo: `https://git.test/${owner}/mine` } },
        status: { ...one.status, authorKeys: [...keys] },
      }),
    );
  assert.equal((await get('/api/authors/victim/statement', headers)).status, 401);
  const [status, , detail] = await refusal(await get('/api/authors/earlier/statement', headers));
  assert.equal(status, 401);
  assert.match(detail, /of an earlier form .* replace that line by `moorage-author-sha256-[0-9a-f]{64}`, push/);
  const renewed = findAuthorKeyHashes(/`(moorage-author-sha256-\w+)`/.exec(detail)?.[1] ?? '');
  await sample.host(
    'renewed',
    (_request, response) => response.end('ok'),
    (one) => ({
      ...one,
      spec: { ...one.spec, source: { ...one.spec.source, repo: 'https://git.test/earlier/mine' } },
      status: { ...one.status, authorKeys: renewed },
    }),
  );
  assert.equal((await get('/api/authors/earlier/statement', headers)).status, 200, 'the key stays, with a new line');
});

test('a line goes down to the uses that it counts', async () => {
  const { lines, state, earned_usd, closing_usd, ...rest } = await statement();
  assert.deepEqual([rest.author, state, earned_usd, closing_usd], [author, 'open', '0.00014', '0.00014']);
  const [line] = lines;
  assert.ok(line !== undefined);
  assert.deepEqual(
    [
      line.kind,
      line.app,
      line.day,
      line.item,
      line.uses,
      line.gross_usd,
      line.share,
      line.amount_usd,
      line.price_version,
    ],
    ['share', 'mine', today, 'use', 2, '0.0002', '0.7', '0.00014', 'beta'],
  );
  const events = z
    .looseObject({ events: z.array(z.object({ id: z.string(), at: z.string() })), next: z.null() })
    .parse(await (await get(new URL(line.events_url ?? '').pathname)).json()).events;
  assert.deepEqual(
    events.map(({ id }) => id),
    ['visit-a', 'visit-b'],
  );
  assert.equal(
    createHash('sha256')
      .update(events.map(({ id }) => id).join('\n'))
      .digest('hex'),
    line.events_sha256,
  );
});

test('the same as CSV', async () => {
  const response = await get(`/api/authors/octo/statement?month=${month}`, {
    authorization: `Bearer ${key}`,
    accept: 'text/csv',
  });
  assert.match(response.headers.get('content-disposition') ?? '', new RegExp(`octo-${month}\\.csv`));
  const [header, row] = (await response.text()).split('\r\n');
  assert.match(header ?? '', /^id,kind,app,day,item,price_version,uses,gross_usd,share,amount_usd,/);
  assert.match(row ?? '', new RegExp(`^\\d+,share,mine,${today},use,beta,2,0.0002,0.7,0.00014,`));
});

test('a person reads it on a page, with the key in a form', async () => {
  const show = (fields: Record<string, string>): Promise<Response> =>
    sample.request('/authors/octo', {
      method: 'POST',
      headers: {
        'content-type': 'application/x-www-form-urlencoded',
        origin: 'https://moorage.test',
        host: 'moorage.test',
      },
      body: new URLSearchParams(fields).toString(),
    });
  const html = await (await show({ month, key })).text();
  assert.match(html, new RegExp(`Statement of ${month}`));
  assert.match(html, /\$0\.00014/);
  assert.ok(!html.includes(key), 'the key is not in the page');
  const refused = await (await show({ month, key: createAuthorKey() })).text();
  assert.match(refused, /The statement cannot be shown/);
  assert.doesNotMatch(refused, /0\.00014/);
});

test('a month that is none, and a line that is none, are refused by name', async () => {
  assert.match((await refusal(await get('/api/authors/octo/statement?month=2026-13')))[2], /month/);
  assert.deepEqual((await refusal(await get('/api/authors/octo/lines/999/events'))).slice(0, 2), [404, 'unknown-line']);
  for (const after of ['x', '2026-99-99T00:00:00.000000Z,a', '2026-01-01T00:00:00.000000Z,\0'])
    assert.match(
      (await refusal(await get(`/api/authors/octo/lines/1/events?after=${encodeURIComponent(after)}`)))[2],
      /after/,
    );
  assert.match((await refusal(await post('/api/authors/octo/disputes', { month, message: 'a\0b' })))[2], /message/);
});

test('a dispute keeps a statement open until it is answered; what comes of it is a line', async () => {
  const opened = await post('/api/authors/octo/disputes', { month, message: 'The third visit is missing.' });
  assert.equal(opened.status, 200);
  const { id } = z.looseObject({ id: z.string() }).parse(await opened.json());
  assert.equal((await statement()).state, 'disputed');
  await database.query(closeMonths, [14, new Date(Date.now() + 90 * 86_400_000)]);
  assert.equal((await statement()).state, 'disputed', 'an open dispute keeps it from being final');
  const line = await answerDispute(database, { dispute: id, answer: 'You are right.', amount: '0.00007' });
  assert.ok(line !== undefined);
  assert.equal(
    await answerDispute(database, { dispute: id, answer: 'You are right.', amount: '0.00007' }),
    undefined,
    'once',
  );
  const { state, corrected_usd, disputes } = await statement();
  assert.deepEqual([state, corrected_usd, disputes[0]?.resolution], ['adjusted', '0.00007', 'You are right.']);
  assert.deepEqual(
    (await refusal(await post('/api/authors/octo/disputes', { month, line: '999', message: 'x' }))).slice(0, 2),
    [404, 'unknown-line'],
  );
});

test('a payout is at most what is owed, once a reference', async () => {
  const pay = (amount: string, id: string): Promise<string | undefined> =>
    adjust(database, { kind: 'payout', author, amount: `-${amount}`, id, reason: id });
  await assert.rejects(
    pay('1', 'too much'),
    (error) => error instanceof CorrectionError && /is owed \$0\.00021, less than \$1$/.test(error.message),
  );
  assert.ok((await pay('0.0002', 'bank 1')) !== undefined);
  assert.equal(await pay('0.0002', 'bank 1'), undefined);
  const { paid_usd, closing_usd } = await statement();
  assert.deepEqual([paid_usd, closing_usd], ['0.0002', '0.00001']);
  await assert.rejects(refund(database, 'visit-a', 'x'), CorrectionError);
});

test('once a statement is final it cannot be disputed, and a correction stands in the current month', async () => {
  const past = '2025-01';
  await adjust(database, { kind: 'correction', author, amount: '0.5', id: 'old', reason: 'agreed', month: past });
  assert.equal((await statement(past)).state, 'open');
  await database.query(closeMonths, [14, null]);
  assert.equal((await statement(past)).state, 'final');
  assert.deepEqual(
    (await refusal(await post('/api/authors/octo/disputes', { month: past, message: 'x' }))).slice(0, 2),
    [409, 'statement-final'],
  );
  await adjust(database, { kind: 'correction', author, amount: '-0.1', id: 'late', reason: 'agreed too', month: past });
  assert.equal((await statement(past)).lines.length, 1);
  assert.ok((await statement()).lines.some(({ reason }) => reason === 'agreed too'));
});

test('what an author owes us has its sign before the dollar', async () => {
  const debtor = 'git.test/debtor';
  await adjust(database, { kind: 'correction', author: debtor, amount: '-0.1', id: 'back', reason: 'counted twice' });
  await assert.rejects(
    adjust(database, { kind: 'payout', author: debtor, amount: '-2', id: 'bank 2', reason: 'paid' }),
    { message: 'git.test/debtor is owed -$0.1, less than $2' },
  );
});

test('the price list is public', async () => {
  const list = z
    .looseObject({
      current: z.string(),
      versions: z.array(z.looseObject({ version: z.string(), free: z.array(z.string()), call_usd: z.string() })),
    })
    .parse(await (await get('/api/prices', {})).json());
  assert.equal(list.current, 'beta');
  assert.deepEqual([list.versions[0]?.free, list.versions[0]?.call_usd], [['compare_models'], '0.0001']);
});

test('the host travels in the form and in every address, so that they go on working when another host has the owner', async () => {
  await sample.host(
    'elsewhere',
    (_request, response) => response.end('ok'),
    (one) => ({
      ...one,
      spec: { ...one.spec, source: { ...one.spec.source, repo: 'https://other.test/octo/else' } },
    }),
  );
  const page = await (await get('/authors/octo?host=git.test', {})).text();
  const action = /<form\s+class="panel"\s+method="post"\s+action="([^"]+)"/.exec(page)?.[1] ?? '';
  assert.match(action, /host=git\.test/);
  assert.match(page, /\/api\/authors\/octo\/keys\?host=git\.test/);
  const shown = await sample.request(action.replaceAll('&amp;', '&'), {
    method: 'POST',
    headers: {
      'content-type': 'application/x-www-form-urlencoded',
      origin: 'https://moorage.test',
      host: 'moorage.test',
    },
    body: new URLSearchParams({ month, key }).toString(),
  });
  assert.equal(shown.status, 200);
  assert.match(await shown.text(), new RegExp(`Statement of ${month}`));
  const known = z
    .looseObject({ statements_url: z.url(), keys_url: z.url() })
    .parse(await (await get('/api/authors/octo?host=git.test', {})).json());
  const list = z.looseObject({ statements: z.array(z.looseObject({ url: z.url() })) });
  const pathOf = (url: string): string => url.slice(new URL(url).origin.length);
  const { statements } = list.parse(await (await get(pathOf(known.statements_url))).json());
  const read = z.looseObject({ lines: z.array(z.looseObject({ events_url: z.string().nullable() })) });
  const { lines } = read.parse(await (await get(pathOf(statements[0]?.url ?? ''))).json());
  const events = lines.flatMap(({ events_url: url }) => url ?? []);
  assert.ok(events.length > 0);
  for (const url of events) assert.equal((await get(pathOf(url))).status, 200, url);
  assert.equal((await sample.request(pathOf(known.keys_url), { method: 'POST' })).status, 200);
});

test('a statement is news for a week once its month has ended and is posted, and so is a payout, unless the author is frozen', async () => {
  const end = new Date(Date.UTC(Number(month.slice(0, 4)), Number(month.slice(5)), 1));
  const after = new Date(end.getTime() + 3_600_000);
  const read = async (at: Date): Promise<string[]> =>
    (await listAuthorNews(database, 14, at)).map(({ author: of, kind, subject }) => `${of} ${kind} ${subject}`);
  const runSql = async (text: string): Promise<unknown> =>
    database.query({ name: `news-${text}`.slice(0, 60), text, row: z.unknown() }, []);
  const wanted = `${author} statement ${month}`;
  assert.ok(!(await read(after)).includes(wanted), 'the last day is not posted');
  await runSql(`update revenue.progress set received_until = '${end.toISOString()}'`);
  assert.ok((await read(after)).includes(wanted));
  assert.ok(!(await read(new Date(end.getTime() - 1000))).includes(wanted));
  assert.ok(!(await read(new Date(end.getTime() + 8 * 86_400_000))).includes(wanted));
  const line = await adjust(database, { kind: 'correction', author, amount: '2', id: 'news', reason: 'x' });
  assert.ok(line !== undefined);
  const paid = await adjust(database, { kind: 'payout', author, amount: '-1.25', id: 'news', reason: 'x' });
  const found = (await listAuthorNews(database, 14)).find(({ kind, subject }) => kind === 'payout' && subject === paid);
  assert.equal(Number(found?.amountUsd), 1.25);
  await runSql(`insert into revenue.account (author, account, other, frozen_at) values ('${author}', 'x:1', 'x:2', now())
    on conflict (author) do update set other = excluded.other, frozen_at = now()`);
  for (const at of [after, new Date()])
    assert.deepEqual(
      (await read(at)).filter((each) => each.startsWith(`${author} `)),
      [],
    );
});
