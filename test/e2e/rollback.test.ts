// Which commit serves after a good one, one that crashes again and again, and one that does not start: with a short time
// to be good, the good one each time.
import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, test } from 'vitest';
import {
  appUrl,
  deleteApps,
  edit,
  waitFor,
  get,
  listPods,
  runKubectl,
  readApp,
  removeFiles,
  submit,
  systemNamespace,
  writeFiles,
} from '../support/cluster.ts';

const name = 'e2e-rollback';
const operator = ['deployment/moorage-operator', '-n', systemNamespace] as const;
const setting = 'MOORAGE_APPS_GOOD_AFTER';
const script = (version: string, lifeSeconds: number): string => `import http.server, os, threading, time
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200); self.end_headers(); self.wfile.write(b'${version}')
    def log_message(self, *a): pass
def end():
    time.sleep(${lifeSeconds}); print('RuntimeError: worn out', flush=True); os._exit(1)
if ${lifeSeconds} > 0: threading.Thread(target=end, daemon=True).start()
http.server.ThreadingHTTPServer(('', int(os.environ['PORT'])), Handler).serve_forever()
`;

let folder: string;
let before = '';
beforeAll(async () => {
  before = await runKubectl('get', ...operator, '-o', `jsonpath={..env[?(@.name=="${setting}")].value}`);
  await setGoodAfter('25s');
  folder = writeFiles(name, { 'app.py': script('good', 0), 'requirements.txt': '' });
  const { exitCode, all } = await submit(folder);
  assert.equal(exitCode, 0, all);
});
afterAll(async () => {
  removeFiles(folder);
  await deleteApps(name);
  await setGoodAfter(before === '' ? '10m' : before);
});

/** Other files go on meanwhile: a new operator takes over from the old one. */
async function setGoodAfter(value: string): Promise<void> {
  await runKubectl('set', 'env', ...operator, `${setting}=${value}`);
  await runKubectl('rollout', 'status', ...operator, '--timeout=120s');
}

async function rolledBackTo(commit: string | undefined): Promise<void> {
  await waitFor(
    'the good commit serving, and the reason',
    async () => {
      const { status } = await readApp(name);
      return status?.served?.commit === commit && status?.rejection?.message.includes('Rolled back') === true
        ? true
        : undefined;
    },
    180,
  );
  // A Service drops a pod a moment after it stops being ready. Until then, a pod of another commit may still answer.
  await waitFor('the pods of other commits to end', async () => {
    const pods = await listPods(`moorage.dev/app=${name}`);
    return pods.every(({ metadata }) => metadata.annotations?.['moorage.dev/commit'] === commit) ? true : undefined;
  });
  assert.equal((await get(appUrl(name))).body, 'good');
}

test('a commit that crashes every few seconds, and one that does not start, are rolled back to the proven one', async () => {
  const good = await waitFor('it to be good', async () =>
    (await readApp(name)).status?.releases?.find(({ goodAt }) => goodAt !== undefined),
  );
  edit(folder, 'app.py', () => script('restless', 8));
  await submit(folder);
  await rolledBackTo(good.commit);
  edit(folder, 'app.py', () => 'raise SystemExit("no configuration")\n');
  await submit(folder);
  await rolledBackTo(good.commit);
  await sleep(5_000);
  await rolledBackTo(good.commit);
});
