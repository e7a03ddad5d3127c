// `npm run show:author-week -- [FOLDER] [--publish FILE]`: an author's week on the local cluster in a real Chromium: from a missing secret to
// a live app, pushes, a broken commit, rollbacks, a preview, a task, an own domain, a password, the end. Prints what each
// step took and how many requests failed meanwhile, and leaves pictures of the pages.
import assert from 'node:assert/strict';
import { createHmac } from 'node:crypto';
import { mkdirSync, writeFileSync } from 'node:fs';
import { cpus, tmpdir } from 'node:os';
import { join } from 'node:path';
import { z } from 'zod';
import { domainsView } from '../../api/apps/index.ts';
import { readInstallation } from '../../cli/submit/installation.ts';
import { pushSnapshot, takeSnapshot } from '../../cli/submit/snapshot.ts';
import { readCommandLine } from '../../lib/command-line.ts';
import {
  appUrl,
  baseUrl,
  deleteApps,
  get,
  readApp,
  removeFiles,
  removeZone,
  runKubectl,
  serveZone,
  systemNamespace,
  waitFor,
  writeFiles,
} from '../support/cluster.ts';
import { openTab } from '../support/devtools.ts';
import { takePicture } from '../support/pages/views.ts';
import { requestSteadily } from '../support/steady-requests.ts';
import { evaluateExpression, navigate } from '../support/tab.ts';

const usage = `usage: npm run show:author-week -- [FOLDER] [--publish FILE]

  FOLDER           where to leave the pictures (default: moorage-author-week in the temporary folder)
  --publish FILE   write the table there, once every step has run`;

const { pictures, publish } = readCommandLine(
  { usage, options: { publish: { type: 'string' } }, positionals: 1 },
  ({ values, positionals: [folder] }) => ({
    pictures: folder ?? join(tmpdir(), 'moorage-author-week'),
    publish: values.publish,
  }),
);

const name = 'show-author-week';
const preview = `${name}--pr-7`;
const zone = 'author-week.example.com';
const domain = `shop.${zone}`;
const managePath = `/apps/${name}/manage`;
const operator = ['deployment/moorage-operator', '-n', systemNamespace] as const;
const goodAfter = 'MOORAGE_APPS_GOOD_AFTER';

const manifest = `previews: {pullRequests: true}
tasks:
  - {name: report, command: [python, -c, "print('42 visitors this week')"]}
`;

/** @param lifeSeconds after which it crashes; 0: never */
function writeScript(version: string, { readsToken = true, lifeSeconds = 0 } = {}): string {
  return `import http.server, os, threading, time
token = ${readsToken ? "os.environ['API_TOKEN']" : "''"}
print('${version} starts', flush=True)
def end():
    time.sleep(${lifeSeconds}); print('RuntimeError: worn out', flush=True); os._exit(1)
if ${lifeSeconds}: threading.Thread(target=end, daemon=True).start()
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200); self.send_header('content-type', 'text/html'); self.end_headers()
        self.wfile.write(b'<!doctype html><title>${version}</title><h1>${version}</h1>')
    def log_message(self, *a): pass
http.server.ThreadingHTTPServer(('', int(os.environ['PORT'])), Handler).serve_forever()
`;
}

const folder = writeFiles(name, { 'app.py': writeScript('v1'), 'requirements.txt': '', 'moorage.yaml': manifest });
const stranger = writeFiles(preview, {
  ...{ 'app.py': writeScript('pull request', { readsToken: false }), 'requirements.txt': '', 'moorage.yaml': manifest },
});
const tab = await openTab();
const runs = z.looseObject({ runs: z.array(z.looseObject({ state: z.string() })) });
let key = '';
let hook = { url: '', secret: '' };
let shown = 0;
const header = '| step | seconds | requests meanwhile | failed |\n|---|---|---|---|\n';
const rows: string[] = [];

async function show(title: string): Promise<void> {
  shown += 1;
  writeFileSync(join(pictures, `${String(shown).padStart(2, '0')}-${title}.png`), await takePicture(tab));
}

const open = (url: URL | string): Promise<void> => navigate(tab, new URL(url, baseUrl).href);

/** Fills in the form that has this button, and presses it. @param which values of the form that is meant, where several have the button */
async function press(
  button: { readonly name: string; readonly value: string } | undefined,
  fields: Readonly<Record<string, string>>,
  which: Readonly<Record<string, string>> = {},
): Promise<void> {
  const loaded = tab.event('Page.loadEventFired');
  const script = `((button, fields, which) => {
    const isMeant = (form) => Object.entries(which).every(([name, value]) => form.elements[name]?.value === value);
    const buttons = [...document.querySelectorAll('main button[type=submit]')];
    const found = buttons.find((one) => (!button || (one.name === button.name && one.value === button.value)) && isMeant(one.form));
    if (!found) return false;
    for (const [name, value] of Object.entries(fields)) {
      const field = found.form.elements[name];
      if (field instanceof RadioNodeList) [...field].find((one) => one.value === value).click();
      else field.value = value;
    }
    found.click();
    return true;
  })(${JSON.stringify(button ?? null)}, ${JSON.stringify(fields)}, ${JSON.stringify(which)})`;
  assert.ok(await evaluateExpression(tab, script, z.boolean()), `a form with ${JSON.stringify(button)}`);
  await loaded;
}

/** Does what a button of the author's page does. */
async function act(
  action: string,
  fields: Readonly<Record<string, string>> = {},
  which: Readonly<Record<string, string>> = {},
): Promise<void> {
  await open(managePath);
  await press({ name: 'action', value: action }, fields, which);
  const address = await evaluateExpression(tab, 'location.href', z.string());
  assert.ok(
    address.includes(`done=${action}`),
    `${action}: ${await evaluateExpression(tab, 'document.body.innerText', z.string())}`,
  );
}

async function ask(method: 'GET' | 'POST', path: string): Promise<unknown> {
  const headers = key === '' ? {} : { authorization: `Bearer ${key}` };
  const { status, body } = await get(new URL(`/api/apps/${name}${path}`, baseUrl), { method, headers });
  assert.ok(status < 300, `${method} ${path}: ${status} ${body}`);
  return JSON.parse(body);
}

/** @param reference where to, if not the default branch. @param isDeleted removes the reference instead */
async function push(from = folder, reference?: string, isDeleted = false): Promise<string> {
  const snapshot = await takeSnapshot(from);
  try {
    // Git deletes a reference that it is to set to nothing.
    const pushed = isDeleted ? { ...snapshot, commit: '' } : snapshot;
    return await pushSnapshot(pushed, name, await readInstallation(), reference);
  } finally {
    await snapshot.remove();
  }
}

/** Sends what a forge sends. */
async function callHook(event: 'push' | 'pull_request'): Promise<void> {
  const body = JSON.stringify(event === 'push' ? { ref: 'refs/heads/main' } : {});
  const signature = `sha256=${createHmac('sha256', hook.secret).update(body).digest('hex')}`;
  const headers = { 'content-type': 'application/json', 'x-github-event': event, 'x-hub-signature-256': signature };
  const { status } = await get(new URL(hook.url), { method: 'POST', headers, body });
  assert.equal(status, 202);
}

async function pushWithHook(): Promise<void> {
  await push();
  await callHook('push');
}

async function setPullRequest(isOpen: boolean): Promise<void> {
  await push(stranger, 'refs/pull/7/head', !isOpen);
  await callHook('pull_request');
}

/** Waits until the app shows this version, and no pod of another one is left to answer. */
async function waitForVersion(version: string, app = name): Promise<void> {
  let times = 0;
  const isShown = async (): Promise<true | undefined> => {
    times = (await get(appUrl(app))).body.includes(`<h1>${version}</h1>`) ? times + 1 : 0;
    return times > 4 ? true : undefined;
  };
  await waitFor(`${app} to show ${version}`, isShown, 240);
}

async function waitForRejection(text: RegExp): Promise<void> {
  const isRejected = async (): Promise<true | undefined> =>
    text.test(JSON.stringify((await readApp(name)).status?.rejection ?? {})) || undefined;
  await waitFor(`a rejection with ${text}`, isRejected, 240);
}

/** Runs a step, and prints its row. @param isServing whether requests go to the app meanwhile, of which none may fail */
async function step(title: string, isServing: boolean, run: () => Promise<void>): Promise<void> {
  const startedAt = performance.now();
  let seconds = 0;
  const running = run().then(() => {
    seconds = (performance.now() - startedAt) / 1000;
  });
  const log = isServing ? await requestSteadily(appUrl(name), running, 2_000) : undefined;
  await running;
  const requests = log === undefined ? '– | –' : `${log.count} | ${log.failures.length}`;
  const row = `| ${title} | ${seconds.toFixed(1)} | ${requests} |\n`;
  rows.push(row);
  process.stdout.write(row);
  for (const failure of log?.failures.slice(0, 5) ?? []) process.stderr.write(`${failure}\n`);
  if ((log?.failures.length ?? 0) > 0) process.exitCode = 1;
}

async function showLog(search: string): Promise<void> {
  await open(`${managePath}?search=${encodeURIComponent(search)}#log`);
}

async function live(): Promise<void> {
  await step('submit by form: the missing secret is named', false, async () => {
    const repo = await push();
    await open('/submit');
    await press(undefined, { repo });
    await waitForRejection(/API_TOKEN/);
    await open(`/status/local/${name}`);
    await show('secret-missing');
  });
  await step('make a key, commit its line, sign in', false, async () => {
    const made = z.looseObject({ key: z.string(), line: z.string() }).parse(await ask('POST', '/keys'));
    writeFileSync(join(folder, '.moorage-owner'), `${made.line}\n`);
    const repo = await push();
    const init = { method: 'POST', headers: { 'content-type': 'application/json' } } as const;
    await get(new URL('/api/submit', baseUrl), { ...init, body: JSON.stringify({ repo }) });
    await waitFor('the line to be reviewed', async () => (await readApp(name)).status?.authorKeys?.[0]);
    await open(managePath);
    await show('sign-in');
    await press({ name: 'action', value: 'sign-in' }, { key: made.key });
    ({ key } = made);
    await show('signed-in');
  });
  await step('set the secret: live', false, async () => {
    await act('set-secret', { name: 'API_TOKEN', value: 'swordfish-4713' });
    await waitForVersion('v1');
    await open(appUrl(name));
    await show('live');
  });
}

async function change(): Promise<void> {
  const first = (await readApp(name)).status?.served?.commit ?? '';
  hook = z.object({ url: z.string(), secret: z.string() }).parse(await ask('POST', '/push-hook-secret'));
  await step('push with a webhook: live', true, async () => {
    writeFileSync(join(folder, 'app.py'), writeScript('v2'));
    await pushWithHook();
    await waitForVersion('v2');
  });
  await step('a syntax error: the old release serves, the log has file and line', true, async () => {
    writeFileSync(join(folder, 'app.py'), `${writeScript('v3')}\ndef broken(:\n`);
    await pushWithHook();
    await waitForRejection(/"file":"app\.py","line":\d+|"line":\d+,.*"file":"app\.py"/);
  });
  await showLog('SyntaxError');
  await show('syntax-error');
  await step('a commit that crashes after 30 s: rolled back', false, async () => {
    const good = (await readApp(name)).status?.served?.commit;
    await waitFor('the release to be good', async () =>
      (await readApp(name)).status?.releases?.find(({ commit, goodAt }) => commit === good && goodAt !== undefined),
    );
    writeFileSync(join(folder, 'app.py'), writeScript('v3', { lifeSeconds: 30 }));
    await pushWithHook();
    await waitForVersion('v3');
    await waitForRejection(/worn out.*Rolled back/);
    await waitForVersion('v2');
  });
  await open(managePath);
  await show('rolled-back');
  await step('a commit that does not start: the old release serves', true, async () => {
    writeFileSync(join(folder, 'app.py'), 'raise SystemExit("no configuration")\n');
    await pushWithHook();
    await waitForRejection(/no configuration/);
    await waitForVersion('v2');
  });
  await step('roll back to the first release without a build, and pin it', true, async () => {
    await act('rollback', {}, { commit: first });
    await waitForVersion('v1');
  });
  await show('pinned');
  await step('deploy the newest commit', true, async () => {
    writeFileSync(join(folder, 'app.py'), writeScript('v4'));
    await pushWithHook();
    await act('deploy');
    await waitForVersion('v4');
  });
}

async function share(): Promise<void> {
  await step("the preview of a stranger's pull request", true, async () => {
    await setPullRequest(true);
    await waitForVersion('pull request', preview);
  });
  await open(appUrl(preview));
  await show('preview');
  await step('the pull request is closed: its preview goes', true, async () => {
    await setPullRequest(false);
    await waitFor('the preview to be gone', async () => (await get(appUrl(preview))).status === 404 || undefined);
  });
  await step('a task, run by hand', true, async () => {
    await act('run-task', {}, { name: 'report' });
    const hasSucceeded = async (): Promise<true | undefined> =>
      runs.parse(await ask('GET', '/runs')).runs.some(({ state }) => state === 'succeeded') || undefined;
    await waitFor('the run to succeed', hasSucceeded);
  });
  await showLog('42 visitors');
  await show('task');
  await step('an own domain: a record in DNS, a certificate, an answer', true, async () => {
    await act('add-domain', { domain });
    const [added] = domainsView.parse(await ask('GET', '/domains')).domains;
    await open(`${managePath}#domains`);
    await show('domain-record');
    await serveZone(zone, added === undefined ? {} : { [added.records.txt.name]: added.records.txt.value });
    await act('check-domain', {}, { domain });
    const url = await waitFor('the domain to be active', async () => {
      const [found] = domainsView.parse(await ask('GET', '/domains')).domains;
      return found?.state === 'Active' ? found.url : undefined;
    });
    await waitFor('the app to answer at the domain', async () => {
      await open(url);
      return (await evaluateExpression(tab, 'document.title', z.string())) === 'v4' || undefined;
    });
  });
  await show('domain');
  await step('protect it with a password; a visitor enters it', false, async () => {
    await act('set-access', { access: 'password', password: 'open sesame please' });
    await waitFor('the app to ask', async () => ((await get(appUrl(name))).status === 401 ? true : undefined));
    await open(appUrl(name));
    await show('password');
    await press(undefined, { secret: 'open sesame please' });
    assert.equal(await evaluateExpression(tab, `document.querySelector('h1').textContent`, z.string()), 'v4');
    await show('admitted');
    await act('set-access', { access: 'public', password: '' });
    await waitForVersion('v4');
  });
}

async function end(): Promise<void> {
  await step('delete and restore it', false, async () => {
    await act('delete', { slug: name });
    await waitFor('the app to stop', async () => ((await get(appUrl(name))).status >= 500 ? true : undefined));
    await open(managePath);
    await show('deleted');
    await act('restore');
    await waitForVersion('v4');
  });
  await open(managePath);
  await show('restored');
}

function report(): string {
  return `# An author's week

Generated by \`npm run show:author-week -- FOLDER --publish docs/measured/author-week.md\`: an author submits a small Python app on the one-machine node (${cpus().length} cores), and then does what authors do, through the pages in Chromium, a push hook, and the API where a page has no button. FOLDER receives pictures of the pages.

The seconds are those until a visitor, or the author on the page, sees the result. Where requests are counted, the app was asked every 100 ms, and none may fail. A release counts as good after 45 seconds here, where the default is ten minutes, and the app that crashes does so 30 seconds after each start.

${header}${rows.join('')}`;
}

mkdirSync(pictures, { recursive: true });
const before = await runKubectl('get', ...operator, '-o', `jsonpath={..env[?(@.name=="${goodAfter}")].value}`);
const setGoodAfter = (value: string): Promise<string> => runKubectl('set', 'env', ...operator, `${goodAfter}=${value}`);
try {
  await tab.send('Page.enable');
  await tab.send('Emulation.setDeviceMetricsOverride', {
    width: 1280,
    height: 900,
    deviceScaleFactor: 1,
    mobile: false,
  });
  // Otherwise a release is good only after ten minutes.
  await setGoodAfter('45s');
  await runKubectl('rollout', 'status', ...operator, '--timeout=120s');
  process.stdout.write(header);
  await live();
  await change();
  await share();
  await end();
  process.stdout.write(`\n${shown} pictures in ${pictures}\n`);
  if (publish !== undefined) writeFileSync(publish, report());
} finally {
  await tab.close();
  await removeZone(zone);
  removeFiles(folder);
  removeFiles(stranger);
  await deleteApps(name);
  await setGoodAfter(before === '' ? '10m' : before);
}
