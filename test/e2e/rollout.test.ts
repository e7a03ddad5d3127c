// A new commit, under load: the old one serves until the new one does, and a bad one never replaces a good one.
import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, test } from 'vitest';
import {
  appUrl,
  deleteApps,
  edit,
  waitFor,
  get,
  readApp,
  removeFiles,
  submit,
  writeFiles,
} from '../support/cluster.ts';

const name = 'e2e-rollout';
afterAll(() => deleteApps(name));

const files = {
  'app.py': `import http.server, os, signal, sys
class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = 'HTTP/1.1'
    def do_GET(self):
        body = b'version one'
        self.send_response(200); self.send_header('content-length', str(len(body))); self.end_headers(); self.wfile.write(body)
    def log_message(self, *a): pass
signal.signal(signal.SIGTERM, lambda *a: sys.exit(0))
# With the 5 of Python, a connection that comes while the machine is busy is lost, and with its pod hangs for minutes.
http.server.ThreadingHTTPServer.request_queue_size = 1024
http.server.ThreadingHTTPServer(('', int(os.environ['PORT'])), Handler).serve_forever()
`,
  'requirements.txt': '',
};

interface Load {
  readonly sent: number;
  readonly failures: readonly string[];
  readonly bodies: ReadonlySet<string>;
}

/** Sends `rate` requests a second, open loop, until `until` ends. */
async function load(rate: number, until: Promise<unknown>): Promise<Load> {
  const failures: string[] = [];
  const bodies = new Set<string>();
  const flying = new Set<Promise<void>>();
  let sent = 0;
  const ended = new AbortController();
  const one = async (): Promise<void> => {
    try {
      const answer = await get(appUrl(name));
      if (answer.status === 200) bodies.add(answer.body);
      else failures.push(`status ${answer.status}: ${answer.body.slice(0, 80)}`);
    } catch (error) {
      failures.push(String(error));
    }
  };
  const stop = until.finally(() => {
    ended.abort();
  });
  const started = performance.now();
  while (!ended.signal.aborted) {
    const due = Math.floor(((performance.now() - started) / 1000) * rate);
    for (; sent < due; sent += 1) {
      const request = one();
      flying.add(request);
      void request.finally(() => flying.delete(request));
    }
    await sleep(10);
  }
  await stop;
  await Promise.all(flying);
  return { sent, failures, bodies };
}

describe('100 requests a second during a rollout: none fails; then a commit that never listens changes nothing', () => {
  let folder: string;
  beforeAll(async () => {
    folder = writeFiles(name, files);
    const first = await submit(folder);
    assert.equal(first.exitCode, 0, first.all);
    assert.equal((await get(appUrl(name))).body, 'version one');
  });
  afterAll(() => {
    removeFiles(folder);
  });

  test('rolls out a new commit', async (context) => {
    edit(folder, 'app.py', (text) => text.replace('version one', 'version two'));
    const rollout = submit(folder).then(async (ended) => {
      assert.equal(ended.exitCode, 0, ended.all);
      await sleep(8_000); // the old pod is still draining when the new one is live
    });
    const seen = await load(100, rollout);
    await context.annotate(`${seen.sent} requests, ${seen.failures.length} failed`);
    assert.deepEqual(seen.failures, []);
    assert.deepEqual([...seen.bodies].sort(), ['version one', 'version two']);
    assert.equal((await get(appUrl(name))).body, 'version two');
  });

  test('a commit that fails to start leaves the last good one serving, and is reported', async () => {
    const good = (await readApp(name)).status?.served?.commit;
    edit(folder, 'app.py', () => 'import sys\nprint("no configuration found")\nsys.exit(3)\n');
    const ended = await submit(folder);
    assert.equal(ended.exitCode, 1, ended.all);
    assert.match(ended.all, /no configuration found/);
    const app = await waitFor('status says which commit serves', async () => {
      const read = await readApp(name);
      return read.status?.rejection === undefined ? undefined : read;
    });
    assert.equal(app.status?.served?.commit, good);
    assert.equal((await get(appUrl(name))).body, 'version two');
  });
});
