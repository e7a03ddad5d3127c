// Signing in with an account of a forge in a real browser, against a real provider at another site: the session begins although
// its cookie is strict, and an account without the right to push gets none of the app.
import assert from 'node:assert/strict';
import { createServer, type Server } from 'node:http';
import { once } from 'node:events';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, test } from 'vitest';
import { z } from 'zod';
import type { App } from '../../../api/apps/hosted-apps.ts';
import { createAuthorKey, hashAuthorKey } from '../../../lib/ownership-file.ts';
import { waitFor } from '../../../localnode/shell.ts';
import { sampleAppsServer, type AppsSample } from '../../support/apps/sample.ts';
import { openTab, type Tab } from '../../support/devtools.ts';
import { findFreePort } from '../../support/free-port.ts';
import { startSignInLab, type SignInLab } from '../../support/sign-in/lab.ts';
import { evaluateExpression, navigate } from '../../support/tab.ts';
import { attempt } from '../../attack/attack.ts';
import { signInAttacks } from '../../attack/attacks/sign-in.ts';
import { Victim } from '../../attack/victim.ts';

const key = createAuthorKey();
const hash = hashAuthorKey(key, 'git.test/octo/mine');
let lab: SignInLab;
let sample: AppsSample;
let server: Server;
let tab: Tab;
let origin = '';
let writes = 0;
const complaints: string[] = [];

beforeAll(async () => {
  const port = await findFreePort();
  // Another site than that of the provider, which is an address of numbers.
  origin = `http://localhost:${port}`;
  lab = await startSignInLab(origin);
  lab.rights.set('ann', new Set(['octo/mine']));
  sample = await sampleAppsServer({
    baseUrl: origin,
    signInProviders: [lab.provider],
    author: {
      lookUpKeys: () =>
        Promise.resolve({ ok: true, commit: 'c'.repeat(40), reference: 'refs/heads/main', authorKeys: [hash] }),
      createSecret: () => Promise.resolve(),
      maximumReplicas: 3,
      writeControl: (app) => {
        writes += 1;
        return Promise.resolve(app);
      },
    },
  });
  await sample.host(
    'mine',
    (_request, response) => response.end('ok'),
    (app): App => ({ ...app, status: { ...app.status, authorKeys: [hash] } }),
  );
  server = createServer(sample.app).listen(port, '127.0.0.1');
  await once(server, 'listening');
  tab = await openTab();
  for (const domain of ['Page', 'Log', 'Runtime']) await tab.send(`${domain}.enable`);
  tab.on('Log.entryAdded', (entry) => complaints.push(JSON.stringify(entry)));
});
afterAll(async () => {
  await tab.close();
  server.closeAllConnections();
  server.close();
  lab.close();
  await sample.stop();
});

const evaluate = (expression: string): Promise<unknown> => evaluateExpression(tab, expression, z.unknown());
async function seen(what: string, expression: string): Promise<void> {
  await waitFor(what, async () => Boolean(await evaluate(expression).catch(() => false)), { seconds: 60 });
}

/** Clicks what a selector finds, once the page is whole. */
async function press(selector: string): Promise<void> {
  const found = `document.querySelector(${JSON.stringify(selector)})`;
  await seen(selector, `document.readyState === 'complete' && ${found}`);
  await evaluate(`${found}.click()`);
}

/** Leaves a picture where a person asked for them. */
async function takePicture(name: string): Promise<void> {
  const folder = process.env['MOORAGE_PICTURES'];
  if (folder === undefined) return;
  mkdirSync(folder, { recursive: true });
  for (const [width, height] of [
    [390, 844],
    [1280, 900],
  ] as const) {
    await tab.send('Emulation.setDeviceMetricsOverride', { width, height, deviceScaleFactor: 1, mobile: width < 600 });
    const shot = z
      .looseObject({ data: z.string() })
      .parse(await tab.send('Page.captureScreenshot', { captureBeyondViewport: true }));
    writeFileSync(join(folder, `${name}.${width}.png`), Buffer.from(shot.data, 'base64'));
  }
}

async function signIn(account: string): Promise<void> {
  await navigate(tab, `${origin}/apps/mine/manage`);
  await press('a[href^="/sign-in/forge"]');
  await seen(
    'the form of the provider',
    `document.readyState === 'complete' && document.querySelector('[name=login]')`,
  );
  await evaluate(`document.querySelector('[name=login]').value = '${account}'`);
  await evaluate(`document.querySelector('[name=password]').value = 'any'`);
  await evaluate(`document.querySelector('form').submit()`);
}

test('an account that can push signs in and restarts the app', async () => {
  await navigate(tab, `${origin}/apps/mine/manage?lang=zh`);
  await takePicture('sign-in.zh');
  await navigate(tab, `${origin}/apps/mine/manage`);
  await takePicture('sign-in.en');
  await signIn('ann');
  await seen('the page of the app', `document.querySelector('h1')?.textContent === 'Manage mine'`);
  assert.equal(await evaluate('location.href'), `${origin}/apps/mine/manage`);
  await takePicture('manage.en');
  await press('[value=restart]');
  await seen('the end of the restart', `location.search.includes('done=restart')`);
  assert.equal(writes, 1);
  await seen('the account in the audit log', `document.body.textContent.includes('account:git.test/ann')`);
  assert.equal(await evaluate('document.cookie'), '', 'no script reads the session');
  await navigate(tab, `${origin}/apps/mine/manage?lang=zh`);
  await takePicture('manage.zh');
  await press('[value=sign-out]');
  await seen('the sign-in page', `document.querySelector('[name=key]')`);
});

test('attack: an account without the right to push signs in at the provider, and gets none of the app', async () => {
  await tab.send('Network.clearBrowserCookies');
  await signIn('bob');
  await seen('the refusal', `document.body.textContent.includes('Your account bob cannot push to')`);
  assert.equal(await evaluate(`document.querySelector('[value=restart]')`), null);
  assert.equal(writes, 1);
});

test('a person with a key makes a token, sees it once, and a viewer who signs in with it gets no form', async () => {
  const signInWith = async (secret: string): Promise<void> => {
    await tab.send('Network.clearBrowserCookies');
    await navigate(tab, `${origin}/apps/mine/manage`);
    await seen('the sign-in page', `document.readyState === 'complete' && document.querySelector('[name=key]')`);
    await evaluate(`document.querySelector('[name=key]').value = '${secret}'`);
    await press('[value=sign-in]');
    await seen('the page of the app', `document.querySelector('h1')?.textContent === 'Manage mine'`);
    await seen('all of it', `document.readyState === 'complete' && document.querySelector('[value=sign-out]')`);
  };
  await signInWith(key);
  await evaluate(`document.querySelector('[name=token-name]').value = 'A viewer'`);
  await press('[value=create-token]');
  await seen('the token', `document.body.textContent.includes('mat-')`);
  await takePicture('token.en');
  const text = String(await evaluate('document.body.textContent'));
  const token = /mat-[\w-]{43}/.exec(text)?.[0] ?? assert.fail(text);
  await signInWith(token);
  await takePicture('viewer.en');
  assert.equal(
    await evaluate(`document.querySelectorAll('[value=restart], [value=set-secret], [value=create-token]').length`),
    0,
  );
  assert.equal(await evaluate(`document.body.textContent.includes('${token}')`), false);
});

test('no page breaks its own policy', () => {
  assert.deepEqual(
    complaints.filter((entry) => /Content Security Policy/i.test(entry)),
    [],
  );
});

test.each(signInAttacks)('attack: $name', async (attack) => {
  const installation = { baseUrl: origin, gitUrl: origin, internalGitUrl: origin };
  const victim = new Victim({ ...installation, authority: undefined, gitPassword: undefined }, undefined, 'none');
  const { result, evidence } = await attempt(attack, victim);
  assert.equal(result, 'held', evidence);
});
