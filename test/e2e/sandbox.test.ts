// What strangers' code finds when it looks around: in a RUN step of its build, and in its running app.
import assert from 'node:assert/strict';
import { networkInterfaces } from 'node:os';
import { afterAll, beforeAll, describe, test } from 'vitest';
import { appsNamespace, baseUrl, deleteApps, get, runKubectl, submit, runWithFiles } from '../support/cluster.ts';

const name = 'e2e-prober';
afterAll(() => deleteApps(name));

/** Addresses that must stay closed: API server by service and by node, kubelet, registry, metadata, another app. */
async function closedAddresses(): Promise<readonly string[]> {
  const node = Object.values(networkInterfaces()).flatMap((all = []) =>
    all.filter(({ family, internal }) => family === 'IPv4' && !internal).map(({ address }) => address),
  );
  const hello = await runKubectl(
    'get',
    'service',
    'hello',
    '-n',
    appsNamespace,
    '-o',
    'jsonpath={.spec.clusterIP}:{.spec.ports[0].port}',
  );
  const pod = await runKubectl(
    'get',
    'pods',
    '-n',
    appsNamespace,
    '-l',
    'moorage.dev/app=hello',
    '-o',
    'jsonpath={.items[0].status.podIP}:{.items[0].spec.containers[0].ports[0].containerPort}',
  );
  // A node in a container has an address that this machine has not.
  const internal = await runKubectl(
    'get',
    'nodes',
    '-o',
    'jsonpath={.items[*].status.addresses[?(@.type=="InternalIP")].address}',
  );
  const ofNode = [...new Set([...node, ...internal.split(' ')])].flatMap((address) =>
    [6443, 10_250, 2379, 443, 22].map((port) => `${address}:${port}`),
  );
  return ['10.96.0.1:443', ...ofNode, '169.254.169.254:80', hello, pod];
}

/** Python that says of each address whether a connection could be made. */
function prober(addresses: readonly string[]): string {
  return `
import os, socket, sys
from concurrent.futures import ThreadPoolExecutor
def look(address):
    host, port = address.rsplit(':', 1)
    try:
        socket.create_connection((host, int(port)), timeout=2).close()
        return 'REACHED'
    except OSError as error:
        return 'closed'
print('uid_map', ' '.join(open('/proc/self/uid_map').read().split()))
print('token', 'FOUND' if os.path.exists('/var/run/secrets/kubernetes.io') else 'absent')
print('registry-credentials', 'FOUND' if any(os.path.exists(p) for p in ('/registry/config.json', os.path.expanduser('~/.docker/config.json'))) else 'absent')
print('environment', 'LEAKED' if any(k.startswith(('MOORAGE_', 'HELLO_SERVICE', 'DOCKER_CONFIG')) for k in os.environ) else 'clean')
addresses = ${JSON.stringify(addresses)}
with ThreadPoolExecutor(len(addresses)) as pool:
    for address, seen in zip(addresses, pool.map(look, addresses)):
        print('address', address, seen)
try:
    os.mknod('/tmp/disk', 0o600 | 0o060000, os.makedev(254, 0)); open('/tmp/disk', 'rb').read(1); print('disk', 'READ')
except OSError as error:
    print('disk', 'refused')
try:
    open('/proc/sysrq-trigger', 'w').write('h'); print('sysrq', 'WRITTEN')
except OSError:
    print('sysrq', 'refused')
sys.stdout.flush()
`;
}

function assertCaged(report: string, addresses: readonly string[]): void {
  assert.doesNotMatch(report, /REACHED|FOUND|LEAKED|READ\b|WRITTEN/, report);
  const [, inside, outside, size] = /uid_map (\d+) (\d+) (\d+)/.exec(report) ?? [];
  assert.equal(inside, '0');
  assert.ok(Number(outside) >= 65_536, `root inside is uid ${String(outside)} on the node`);
  assert.ok(Number(size) <= 65_536);
  for (const address of addresses) assert.ok(report.includes(`address ${address} closed`), `${address} was tried`);
  for (const line of [
    'token absent',
    'registry-credentials absent',
    'environment clean',
    'disk refused',
    'sysrq refused',
  ])
    assert.ok(report.includes(line), line);
}

describe('neither a build step nor an app gets a token, a capability on the node, or access to the internal network', () => {
  let addresses: readonly string[];
  beforeAll(async () => {
    addresses = await closedAddresses();
    const files = {
      'probe.py': prober(addresses),
      'app.py':
        "import http.server, os\nhttp.server.ThreadingHTTPServer(('', int(os.environ['PORT'])), http.server.SimpleHTTPRequestHandler).serve_forever()\n",
      Dockerfile:
        'FROM python:3.13-slim-trixie\nCOPY . /app\nWORKDIR /app\nRUN python probe.py\nEXPOSE 8080\nENV PORT=8080\nCMD ["python", "app.py"]\n',
    };
    const ended = await runWithFiles(name, files, (folder) => submit(folder));
    assert.equal(ended.exitCode, 0, ended.all);
  });

  test('in a RUN step of its build', async () => {
    const log = await get(new URL(`/api/submit-status/local/${name}/log`, baseUrl), {
      headers: { accept: 'text/plain' },
    });
    assertCaged(log.body, addresses);
  });

  test('in its running pod', async () => {
    const report = await runKubectl('exec', '-n', appsNamespace, `deploy/${name}`, '--', 'python', 'probe.py');
    assertCaged(report, addresses);
  });

  test("as its pods' specs show", async () => {
    const spec = await runKubectl(
      'get',
      'deploy',
      name,
      '-n',
      appsNamespace,
      '-o',
      'jsonpath={.spec.template.spec.hostUsers} {.spec.template.spec.automountServiceAccountToken}',
    );
    assert.equal(spec, 'false false');
  });
});
