// Axe on every page in a real browser: on a light telephone in English, and in the dark on a wide screen in Chinese.
import assert from 'node:assert/strict';
import { afterAll, beforeAll, test } from 'vitest';
import { z } from 'zod';
import type { PublicServer } from '../../../api/http/server.ts';
import { serve, stop } from '../../support/api/http-app.ts';
import { openTab, type Tab } from '../../support/devtools.ts';
import { listJudgedPages, pagePaths } from '../../support/pages/judged.ts';
import { managePath, openManagedPage } from '../../support/pages/managed.ts';
import { findAccessibilityFaults, openView, views } from '../../support/pages/views.ts';
import { evaluateExpression } from '../../support/tab.ts';

let tab: Tab;
let server: PublicServer;

beforeAll(async () => {
  server = await serve(listJudgedPages().app);
  tab = await openTab();
  await tab.send('Page.enable');
});
afterAll(async () => {
  await tab.close();
  await stop(server);
});

const looks = views.filter(
  ({ language, scheme, width }) => (language === 'en') === (scheme === 'light') && (scheme === 'light') === width < 600,
);

test('axe detects violations: a picture without text, a field without a label', async () => {
  const [look] = views;
  assert.ok(look);
  await openView(tab, `http://127.0.0.1:${server.port}`, '/', look);
  const spoil = `document.querySelector('main').insertAdjacentHTML('beforeend', '<img src="/x.png"><input>'); true`;
  await evaluateExpression(tab, spoil, z.boolean());
  const faults = (await findAccessibilityFaults(tab)).join('\n');
  assert.match(faults, /critical image-alt: img/);
  assert.match(faults, /critical label: /);
});

for (const path of pagePaths)
  for (const look of looks)
    test(`axe reports no violations on ${path} in ${look.language}, ${look.scheme}`, async () => {
      await openView(tab, `http://127.0.0.1:${server.port}`, path, look);
      assert.deepEqual(await findAccessibilityFaults(tab), []);
    });

test('axe reports no violations on the page of a signed-in author', async () => {
  const page = await openManagedPage();
  const own = await serve(page.listener);
  try {
    await tab.send('Network.enable');
    await tab.send('Network.setExtraHTTPHeaders', { headers: { cookie: page.cookie } });
    for (const look of views) {
      await openView(tab, `http://127.0.0.1:${own.port}`, managePath, look);
      const heading = await evaluateExpression(tab, `document.querySelector('h1').textContent`, z.string());
      assert.match(heading, look.language === 'en' ? /^Manage mine$/ : /mine/);
      assert.ok((await evaluateExpression(tab, `document.querySelectorAll('h2').length`, z.int())) > 5);
      assert.deepEqual(await findAccessibilityFaults(tab), [], JSON.stringify(look));
    }
  } finally {
    await tab.send('Network.setExtraHTTPHeaders', { headers: {} });
    await stop(own);
    await page.stop();
  }
});
