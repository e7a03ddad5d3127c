// Every page in both languages: sound HTML, nothing inline, links that lead somewhere, and small enough with 1,000 apps.
import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { baseUrl } from '../../../support/api/sample.ts';
import { send } from '../../../support/api/send.ts';
import { checkPage } from '../../../support/pages/check.ts';
import { addLanguage, listJudgedPages, pagePaths } from '../../../support/pages/judged.ts';
import { createProject } from '../../../support/pages/records.ts';
import { browserHeaders, samplePages } from '../../../support/pages/sample.ts';

const { app, paths } = listJudgedPages();
const styles = join(import.meta.dirname, '../../../../api/pages/assets/style');

async function get(path: string, headers: Record<string, string> = {}): Promise<Response> {
  return send(app, path, { headers: { ...browserHeaders, ...headers } });
}

for (const path of pagePaths) {
  for (const language of ['en', 'zh'] as const) {
    test(`${path} in ${language} is sound`, async () => {
      const answer = await get(addLanguage(path, language));
      const html = await answer.text();
      assert.equal(answer.status, 200, html.slice(0, 500));
      assert.deepEqual(checkPage(html).faults, []);
      assert.match(html, new RegExp(`<html lang="${language === 'zh' ? 'zh-Hans' : 'en'}"`));
      assert.match(answer.headers.get('content-type') ?? '', /^text\/html; charset=utf-8$/);
      assert.ok(Buffer.byteLength(html) < 100_000, `${Buffer.byteLength(html)} bytes`);
    });
  }
}

test('forbids inline scripts and styles, and frames on other sites', async () => {
  const policy = (await get('/')).headers.get('content-security-policy') ?? '';
  assert.match(policy, /default-src 'none'; style-src 'self'; script-src 'self'/);
  assert.match(policy, /frame-ancestors 'none'/);
  assert.doesNotMatch(policy, /unsafe/);
});

/** The paths of endpoints as patterns. */
const patterns = [...paths].map(
  (path) => new RegExp(`^${path.replaceAll('.', String.raw`\.`).replaceAll(/\{\w+\}/g, '[^/]+')}$`),
);

test('links every page only to endpoints that exist', async () => {
  for (const path of pagePaths) {
    const { links } = checkPage(await (await get(path)).text());
    const own = links
      .map((link) => (link.startsWith(baseUrl) ? link.slice(baseUrl.length) : link))
      .filter((link) => link.startsWith('/'))
      .map((link) => new URL(link, baseUrl).pathname)
      // Downloads of the real catalog.
      .filter((link) => !/^\/api\/bench\/[^/]+\/runs\./.test(link));
    assert.deepEqual(
      own.filter((link) => !patterns.some((pattern) => pattern.test(link))),
      [],
      path,
    );
  }
});

test('keeps the language in links only if the address names it', async () => {
  const named = checkPage(await (await get('/?lang=zh')).text()).links;
  assert.ok(named.includes('/submit?lang=zh'));
  const chosen = await (await get('/', { 'accept-language': 'zh-CN,zh;q=0.9' })).text();
  assert.match(chosen, /<html lang="zh-Hans"/);
  assert.ok(checkPage(chosen).links.includes('/submit'));
});

test('links each page to itself in every language', async () => {
  const html = await (await get('/rank?quality=5&utm_source=x')).text();
  const alternates = [...html.matchAll(/hreflang="([^"]+)" href="([^"]+)"/g)].map(([, tag, url]) => `${tag} ${url}`);
  assert.deepEqual(
    alternates.filter((one) => one.includes(baseUrl)),
    [
      `en ${baseUrl}/rank?quality=5&amp;lang=en`,
      `zh-Hans ${baseUrl}/rank?quality=5&amp;lang=zh`,
      `x-default ${baseUrl}/rank`,
    ],
  );
});

test('shows a page of 1,000 apps within 100 KB', async () => {
  const projects = Array.from({ length: 1_000 }, (_none, index) => createProject(`app-${index}`));
  const many = samplePages({ projects });
  const html = await (await send(many.app, '/', { headers: browserHeaders })).text();
  assert.ok(Buffer.byteLength(html) < 100_000, `${Buffer.byteLength(html)} bytes`);
  assert.match(html, /1,000 apps/);
  assert.equal([...html.matchAll(/<li class="card">/g)].length, 24);
  const next = checkPage(html).links.find((link) => link.startsWith('/?cursor='));
  assert.ok(next);
  const second = await (await send(many.app, next, { headers: browserHeaders })).text();
  assert.match(second, /app-24"/);
  assert.doesNotMatch(second, /app-23"/);
});

test('responds with 304 while a page is unchanged', async () => {
  const first = await get('/bench');
  const etag = first.headers.get('etag') ?? '';
  assert.notEqual(etag, '');
  assert.equal((await get('/bench', { 'if-none-match': etag })).status, 304);
  assert.equal((await get('/bench?lang=zh', { 'if-none-match': etag })).status, 200);
  assert.match(first.headers.get('vary') ?? '', /accept-language/);
});

test('caches files of pages forever at their own address, and not at all at another', async () => {
  const path = /href="(\/assets\/style\.[0-9a-f]{16}\.css)"/.exec(await (await get('/')).text())?.[1] ?? '';
  const style = await get(path);
  assert.deepEqual(
    [style.status, style.headers.get('content-type'), style.headers.get('cache-control')],
    [200, 'text/css; charset=utf-8', 'public, max-age=31536000, immutable'],
  );
  const sheet = await style.text();
  for (const name of readdirSync(styles)) assert.ok(sheet.includes(readFileSync(join(styles, name), 'utf8')), name);
  const other = await get(path.replace(/[0-9a-f]{16}/, '0'.repeat(16)));
  assert.deepEqual([other.status, other.headers.get('cache-control')], [200, 'no-store']);
  for (const wrong of ['/assets/style.css', '/assets/constructor.0000000000000000.css', '/assets/..%2fpage.ts'])
    assert.equal((await get(wrong)).status, 404, wrong);
});

test('reports a missing page as a page to a person and as a problem to a program', async () => {
  for (const path of ['/nothing', '/apps/none', '/bench/none', '/guides/none']) {
    const person = await get(path);
    const html = await person.text();
    assert.equal(person.status, 404, path);
    assert.deepEqual(checkPage(html).faults, [], path);
    const program = await send(app, path, { headers: { accept: 'application/json, text/html;q=0.5' } });
    assert.match(program.headers.get('content-type') ?? '', /^application\/problem\+json/, path);
  }
  expect((await get('/api/nothing')).headers.get('content-type')).toBe('application/problem+json');
});

test('leads from a repository that was not submitted to a form with its name', async () => {
  const answer = await get('/status/octo/none?lang=zh');
  const { faults, links } = checkPage(await answer.text());
  assert.deepEqual([answer.status, faults], [404, []]);
  assert.ok(links.includes('/submit?repo=octo%2Fnone&lang=zh'));
  assert.match(await (await get('/submit?repo=octo%2Fnone')).text(), /value="octo\/none"/);
});

test('serves the front page as HTML to a person and as JSON to a program, and rejects unknown fields of a program', async () => {
  const json = await send(app, '/', { headers: { accept: '*/*' } });
  assert.match(json.headers.get('content-type') ?? '', /^application\/json/);
  assert.equal((await send(app, '/?nothing=1', { headers: { accept: '*/*' } })).status, 400);
  assert.equal((await get('/?utm_source=newsletter')).status, 200);
});

test('shows why an app of the catalog is not live, and shows no zero for what is not measured', async () => {
  const html = await (await get('/apps/pdf-translate')).text();
  assert.match(html, /its base image is not reachable/);
  assert.match(html, /The forge did not answer/);
  const { text } = checkPage(await (await get('/apps/chat-ui-1')).text());
  assert.match(text.replaceAll(/\s+/g, ' '), /Uptime\s*99\.9%\s*–not measured\s*99\.9%/);
});
