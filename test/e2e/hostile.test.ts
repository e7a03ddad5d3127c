// Authors and callers who mean harm: what they try comes to nothing, ends, and is reported to them in words.
import assert from 'node:assert/strict';
import { afterAll, describe, test } from 'vitest';
import { readInstallation } from '../../cli/submit/installation.ts';
import { pushSnapshot, takeSnapshot } from '../../cli/submit/snapshot.ts';
import {
  appsNamespace,
  baseUrl,
  deleteApps,
  get,
  runKubectl,
  readApp,
  submit,
  runWithFiles,
} from '../support/cluster.ts';

const names = [
  'e2e-hostile-build',
  'e2e-hostile-disk',
  'e2e-hostile-user',
  'e2e-hostile-words',
  'e2e-hostile-a',
  'e2e-hostile-b',
] as const;
const [build, disk, user, words, spoofedOne, spoofedOther] = names;
afterAll(() => deleteApps(...names));

/** Tries what a step must not be able to do; each line says `name refused`, or `name GAINED` with what was gained. */
const attempts = `
import ctypes, os, socket, urllib.error, urllib.request
libc = ctypes.CDLL(None, use_errno=True)
def attempt(name, run):
    try:
        print(name, 'GAINED', run(), flush=True)
    except (OSError, ValueError) as error:
        print(name, 'refused', type(error).__name__, flush=True)
def call(number, *arguments):
    if libc.syscall(number, *arguments) < 0:
        raise OSError(ctypes.get_errno(), 'refused')
def mount(kind):
    if libc.mount(kind, b'/mnt', kind, 0, None) < 0:
        raise OSError(ctypes.get_errno(), 'refused')
def registry():
    return urllib.request.urlopen('http://registry.moorage-system.svc:5000/v2/_catalog', timeout=5).read()
def push():
    return urllib.request.urlopen('http://git.moorage-git.svc.cluster.local/local/hello.git/info/refs?service=git-receive-pack', timeout=5).read()
def others():
    seen = [pid for pid in os.listdir('/proc') if pid.isdigit() and b'buildkitd' in open(f'/proc/{pid}/cmdline', 'rb').read()]
    if not seen:
        raise ValueError('none')
    return seen
attempt('listen-to-the-pod', lambda: socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.ntohs(3)))
attempt('raw-socket', lambda: socket.socket(socket.AF_INET, socket.SOCK_RAW, 1))
attempt('hypervisor-socket', lambda: socket.socket(40, socket.SOCK_STREAM))
attempt('new-user-namespace', lambda: call(272, 0x10000000))
attempt('kernel-keyring', lambda: call(250, 0, -3, 0))
attempt('bpf', lambda: call(321, 0, 0, 0))
attempt('mount-proc', lambda: mount(b'proc'))
attempt('mount-cgroup', lambda: mount(b'cgroup2'))
attempt('device', lambda: os.mknod('/tmp/disk', 0o60600, os.makedev(8, 0)))
attempt('core-pattern', lambda: open('/proc/sys/kernel/core_pattern', 'w').write('|/x'))
attempt('verdict', lambda: open('/dev/termination-log').read())
attempt('builder', others)
attempt('registry', registry)
attempt('git-push', push)
children = 0
try:
    while children < 6000:
        if os.fork() == 0:
            import time
            time.sleep(8)
            os._exit(0)
        children += 1
    print('fork-bomb GAINED', children, flush=True)
except OSError:
    print('fork-bomb refused', flush=True)
`;
const attempted = [...attempts.matchAll(/^attempt\('([^']+)'/gm)].map((match) => match[1] ?? '').concat('fork-bomb');

describe('hostile authors', { concurrent: true }, () => {
  test('a build step gains no privileges, floods only its own log, and its failure is reported', async () => {
    // 40 MB, more than the limit that the log is checked against.
    const flood = "import sys\nfor i in range(400_000): sys.stdout.write('\\x1b]' * 10 + 'x' * 80 + '\\n')\n";
    const files = {
      'attempts.py': attempts,
      'flood.py': flood,
      Dockerfile:
        "FROM python:3.13-slim-trixie\nCOPY . /a/\nRUN python /a/attempts.py\nRUN python /a/flood.py; printf '\\033[2J\"}\\377\\n'; exit 3\n",
    };
    const ended = await runWithFiles(build, files, (folder) => submit(folder));
    assert.equal(ended.exitCode, 1, ended.all);
    assert.match(ended.all, /build\/failed/);
    const { body } = await get(new URL(`/api/submit-status/local/${build}/log`, baseUrl), {
      headers: { accept: 'text/plain' },
    });
    for (const name of attempted) assert.match(body, new RegExp(` ${name} refused`), `${name} was tried and refused`);
    assert.doesNotMatch(body, / GAINED /);
    assert.ok(!body.includes('\u001b'), 'no escape reaches who reads the log');
    assert.ok(body.length < 32 * 1024 * 1024, 'the flood is cut');
  });

  test('an app that fills a volume of its image fills only its own disk', async () => {
    const fill =
      'fallocate -l 1200M /data/fill; head -c 1200M /dev/zero > /data/more; echo written $(du -sm /data | cut -f 1); exit 9';
    const files = {
      Dockerfile: `FROM debian:bookworm-slim\nRUN mkdir /data\nVOLUME /data\nCMD ["sh", "-c", "${fill}"]\n`,
    };
    const ended = await runWithFiles(disk, files, (folder) => submit(folder));
    await deleteApps(disk);
    assert.equal(ended.exitCode, 1, ended.all);
    assert.match(ended.all, /run\/crashed/);
    assert.match(ended.all, /No space left on device/);
    const written = Number(/written (\d+)/.exec(ended.all)?.[1]);
    assert.ok(written > 0 && written <= 1_024, `${written} MiB on a disk of 1Gi`);
  });

  test('rejects an image whose user does not exist', async () => {
    const ended = await runWithFiles(
      user,
      { Dockerfile: 'FROM debian:bookworm-slim\nUSER ghost\nCMD ["sleep", "600"]\n' },
      (folder) => submit(folder),
    );
    assert.equal(ended.exitCode, 1, ended.all);
    assert.match(ended.all, /run\/no-such-user/);
    assert.match(ended.all, /USER/);
  });

  test("an app's last output appears in its log and cannot forge a verdict", async () => {
    const image = `registry.moorage-system.svc:5000/apps/hello@sha256:${'0'.repeat(64)}`;
    const say = `say() { printf '{"image":"${image}"}\\n\\033[2J\\033]0;owned\\007\\377\\000tail'; }; say > /dev/termination-log; say; exit 42`;
    // One stream: of two, nobody says which line comes first.
    const ended = await runWithFiles(
      words,
      {
        Dockerfile: 'FROM debian:bookworm-slim\nCOPY say.sh /\nCMD ["sh", "-c", "exec sh /say.sh 2>&1"]\n',
        'say.sh': say,
      },
      (folder) => submit(folder),
    );
    assert.equal(ended.exitCode, 1, ended.all);
    const { status } = await readApp(words);
    assert.equal(status?.rejection?.rule, 'run/crashed');
    assert.match(status.rejection.log ?? '', /tail$/);
    assert.ok(!(status.rejection.log ?? '').includes('\u001b'));
    assert.match(status.built?.image ?? '', new RegExp(`/apps/${words}\\.[0-9a-f-]{36}@sha256:`));
  });
});

test('rejects a contact designed to be slow to check like any other', async () => {
  const body = JSON.stringify({ repo: 'local/hello', contact: `a@${'.'.repeat(60_000)}@` });
  const answers = await Promise.all(
    Array.from({ length: 8 }, () =>
      get(new URL('/api/submit', baseUrl), { method: 'POST', headers: { 'content-type': 'application/json' }, body }),
    ),
  );
  assert.deepEqual(
    answers.map(({ status }) => status),
    Array.from({ length: 8 }, () => 400),
  );
  assert.equal((await get(new URL('/openapi.json', baseUrl))).status, 200);
});

test('a caller cannot impersonate another one with a header', async () => {
  const [one, other] = await Promise.all([submitAs(spoofedOne, '192.0.2.1'), submitAs(spoofedOther, '198.51.100.1')]);
  assert.ok(one !== '');
  assert.equal(one, other);
});

async function submitAs(name: string, address: string): Promise<string> {
  const headers = {
    'content-type': 'application/json',
    'x-forwarded-for': address,
    'x-real-ip': address,
    forwarded: `for=${address}`,
  };
  const repo = await runWithFiles(name, {}, async (folder) =>
    pushSnapshot(await takeSnapshot(folder), name, await readInstallation()),
  );
  const { status, body } = await get(new URL('/api/submit', baseUrl), {
    method: 'POST',
    headers,
    body: JSON.stringify({ repo }),
  });
  assert.equal(status, 200, body);
  const caller = (await readApp(name)).metadata.labels?.['moorage.dev/caller'] ?? '';
  // What it would be built to is of no interest.
  await runKubectl('delete', 'happ', name, '-n', appsNamespace, '--wait=false');
  return caller;
}
