// An app that means to fill the node's disk: what each place of its pod takes until it refuses, and what it comes to.
import assert from 'node:assert/strict';
import { globSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { execa } from 'execa';
import { afterAll, beforeAll, describe, test } from 'vitest';
import { z } from 'zod';
import { paths } from '../../localnode/paths.ts';
import { appsNamespace, appUrl, deleteApps, waitFor, get, listPods, submit, runWithFiles } from '../support/cluster.ts';

const name = 'e2e-disk';
const MiB = 1024 * 1024;
const [disk, volume] = [16 * MiB, 1 * MiB];

/** Writes to a place from another thread, and says at any time how much it has taken. */
const attacker = `
import http.server, json, os, stat, sys, threading
block = os.urandom(1 << 18)
taken, ended = {}, {}
kernel = ('proc', 'sysfs', 'cgroup', 'cgroup2', 'devpts', 'devtmpfs', 'mqueue')
def mounts():
    found = []
    for line in open('/proc/self/mountinfo'):
        left, right = line.split(' - ')
        path, options = left.split()[4:6]
        kind, flags = right.split()[0], right.split()[2]
        writable = 'rw' in options.split(',') and 'rw' in flags.split(',') and kind not in kernel
        mode = os.stat(path).st_mode
        if writable and (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
            found.append({'path': path, 'kind': kind, 'isFile': stat.S_ISREG(mode)})
    return found
def append(place, path, limit):
    with open(path, 'ab', 0) as file:
        while taken[place] < limit:
            taken[place] += file.write(block)
def fill(place, folder, limit):
    count = 0
    while taken[place] < limit:
        append(place, f'{folder}/{count}', min(limit, taken[place] + (8 << 20)))
        count += 1
def shout(place, limit):
    line = b'x' * 8191 + b'\\n'
    while taken[place] < limit:
        taken[place] += os.write(1, line * 8)
def attack(place, limit):
    taken[place] = 0
    try:
        if place == 'log':
            shout(place, limit)
        elif os.path.isdir(place):
            fill(place, place, limit)
        else:
            append(place, place, limit)
        ended[place] = 'limit of the test'
    except OSError as error:
        ended[place] = os.strerror(error.errno)
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        place, _, limit = self.path[1:].partition('?')
        if limit:
            threading.Thread(target=attack, args=('log' if place == 'log' else '/' + place, int(limit))).start()
        body = json.dumps({'mounts': mounts(), 'taken': taken, 'ended': ended}).encode()
        self.send_response(200)
        self.send_header('content-length', str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    def log_message(self, *_):
        pass
http.server.ThreadingHTTPServer(('', int(os.environ['PORT'])), Handler).serve_forever()
`;

const report = z.object({
  mounts: z.array(z.object({ path: z.string(), kind: z.string(), isFile: z.boolean() })),
  taken: z.record(z.string(), z.number()),
  ended: z.record(z.string(), z.string()),
});
type Report = z.infer<typeof report>;

async function ask(path = '/'): Promise<Report | undefined> {
  const { status, body } = await get(appUrl(name, path));
  return status === 200 ? report.parse(JSON.parse(body)) : undefined;
}

interface Outcome {
  readonly bytes: number;
  readonly why: string;
}

/** Has the app write to a place until that refuses, or the app is gone, or it wrote as much as the test lets it. */
async function attack(place: string, limit: number): Promise<Outcome> {
  const begun = Date.now();
  await ask(`${place}?${limit}`);
  const key = place === '/log' ? 'log' : place;
  let bytes = 0;
  while (Date.now() - begun < 90_000) {
    const seen = await ask().catch(() => undefined);
    if (seen?.taken[key] === undefined) return { bytes, why: `evicted after ${Date.now() - begun} ms` };
    bytes = seen.taken[key];
    const why = seen.ended[key];
    if (why !== undefined) return { bytes, why };
    await sleep(50);
  }
  return { bytes, why: 'no end within 90 s' };
}

const figures: string[] = [];
function note(place: string, { bytes, why }: Outcome): number {
  figures.push(`${place.padEnd(24)} ${String(bytes).padStart(11)} bytes  ${why}`);
  return bytes;
}

describe('an app with 16 MiB of disk and a volume of 1 MiB', () => {
  let total = 0;
  beforeAll(async () => {
    const files = {
      'app.py': attacker,
      Dockerfile:
        'FROM python:3.13-slim-trixie\nCOPY app.py /\nEXPOSE 8080\nENV PORT=8080\nCMD ["python", "/app.py"]\n',
      'moorage.yaml': 'run:\n  resources: {disk: 16Mi}\n  volumes: [{name: data, path: /data, size: 1Mi}]\n',
    };
    const ended = await runWithFiles(name, files, (folder) => submit(folder));
    assert.equal(ended.exitCode, 0, ended.all);
  });
  afterAll(async () => {
    process.stdout.write(`${figures.join('\n')}\n`);
    await deleteApps(name);
  });

  test('finds no writable file of the node', async () => {
    const seen = await ask();
    const files = seen?.mounts.filter(({ isFile }) => isFile) ?? [];
    for (const { path } of files) total += note(path, await attack(path, 64 * MiB));
    assert.deepEqual(files, []);
    // A tmpfs is memory, which has a limit of its own.
    assert.deepEqual(
      seen?.mounts.filter(({ kind }) => kind !== 'tmpfs').map(({ path }) => path),
      ['/', '/data'],
    );
  });

  test("cannot write more to its volume than the volume's size", async () => {
    const bytes = note('/data', await attack('/data', 64 * MiB));
    total += bytes;
    assert.ok(bytes <= volume);
  });

  test('writes little more to its own disk than the limit', async () => {
    const bytes = note('/tmp', await attack('/tmp', 4096 * MiB));
    total += bytes;
    assert.ok(bytes <= disk + 4 * MiB);
  });

  test('writes little more in total than its limits', () => {
    note('in all', { bytes: total, why: '' });
    assert.ok(total <= disk + volume + 4 * MiB);
  });

  test('is evicted for exceeding its limit', async () => {
    await waitFor('an evicted pod', async () => {
      const pods = await listPods(`moorage.dev/app=${name}`);
      return pods.some(({ status }) => status?.reason === 'Evicted') ? true : undefined;
    });
  });

  test('does not fill a disk with its log', async () => {
    await waitFor('another pod', () => ask(), 120);
    const begun = Date.now();
    let peak = 0;
    const flood = attack('/log', 4096 * MiB);
    const over = flood.then(() => true);
    while (!(await Promise.race([over, sleep(250, false)]))) peak = Math.max(peak, await logBytes());
    note('log, written', await flood);
    note('log, on disk at most', { bytes: peak, why: `within ${Date.now() - begun} ms` });
    assert.ok(peak <= 64 * MiB);
  });
});

/** What the logs of the app's pods take on the node. */
async function logBytes(): Promise<number> {
  const folders = globSync(join(paths.logs, 'pods', `${appsNamespace}_${name}-*`));
  if (folders.length === 0) return 0;
  const { stdout } = await execa('du', ['-s', '-c', '--block-size=1', ...folders], { reject: false });
  return Number(/^(\d+)\ttotal$/m.exec(stdout)?.[1] ?? 0);
}
