// Attacks of hosted apps: one app that is live tries what it should not be able to do.
import { z } from 'zod';
import { judged, notTried, type Attack, type Outcome } from '../attack.ts';
import type { Victim } from '../victim.ts';

const name = 'attack-app';
const disk = '16Mi';
const megabyte = 1024 ** 2;
/** Of one file, so that a node that does not hold is not filled either. */
const attemptBytes = 256 * megabyte;
/** What the host files of a pod may take in all: names and addresses. */
const hostBytes = megabyte;

/** Answers each attack at a path of its own. */
const server = `import http.server, json, os, socket
HOST_FILES = ['/dev/termination-log', '/etc/hostname', '/etc/resolv.conf', '/etc/hosts']

def fill(path):
    before = os.path.getsize(path) if os.path.exists(path) else 0
    written = 0
    try:
        with open(path, 'ab', buffering=0) as file:
            while written < ${attemptBytes}:
                written += file.write(bytes(1 << 20))
    except OSError as error:
        return [written, error.strerror]
    finally:
        try:
            os.truncate(path, before)
        except OSError:
            pass
    return [written, 'no limit was met']

def reaches(address):
    host, port = address.rsplit(':', 1)
    try:
        socket.create_connection((host, int(port)), timeout=2).close()
        return True
    except OSError:
        return False

class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        path, _, query = self.path.partition('?')
        if path == '/redirect':
            self.send_response(302)
            self.send_header('location', {'1': 'https://evil.example/', '2': 'javascript:alert(1)', '3': '//evil.example/', '4': 'data:text/html,x'}[query])
            self.end_headers()
            return
        if path == '/cookie':
            self.send_response(200)
            self.send_header('set-cookie', f'tossed=1; Domain={query}; Path=/; Secure')
            self.end_headers()
            return
        if path == '/fill':
            answer = {file: fill(file) for file in HOST_FILES}
        elif path == '/reach':
            answer = {address: reaches(address) for address in query.split(',')}
        elif path == '/headers':
            answer = {name.lower(): value for name, value in self.headers.items()}
        elif path == '/self':
            answer = {'uid_map': open('/proc/self/uid_map').read().split(), 'token': os.path.exists('/var/run/secrets/kubernetes.io'), 'environment': sorted(os.environ)}
        else:
            answer = {}
        body = json.dumps(answer).encode()
        self.send_response(200)
        self.send_header('content-type', 'application/json')
        self.send_header('content-length', str(len(body)))
        self.end_headers()
        self.wfile.write(body)

http.server.ThreadingHTTPServer(('', 8080), Handler).serve_forever()
`;

const files = {
  'server.py': server,
  Dockerfile: 'FROM python:3.13-slim-trixie\nCOPY server.py /\nEXPOSE 8080\nCMD ["python", "/server.py"]\n',
  'moorage.yaml': `listing: {title: Attack, description: Tries what it should not be able to do}\nrun: {resources: {disk: ${disk}}}\n`,
};

const hosted = new WeakMap<Victim, Promise<void>>();

/** The app, made once. */
async function host(victim: Victim): Promise<void> {
  const made = hosted.get(victim) ?? victim.host(name, files);
  hosted.set(victim, made);
  await made;
}

/** Asks the app from its own pod, since what is measured there may take longer than a gateway waits. */
async function inPod(victim: Victim, path: string): Promise<unknown> {
  await host(victim);
  const script = `import urllib.request; print(urllib.request.urlopen("http://127.0.0.1:8080${path}", timeout=240).read().decode())`;
  const namespace = await victim.appsNamespace();
  return JSON.parse(await victim.kubectl(['-n', namespace, 'exec', `deploy/${name}`, '--', 'python', '-c', script]));
}

const filled = z.record(z.string(), z.tuple([z.number(), z.string()]));

const hostFiles: Attack = {
  name: "an app fills the node's disk through host files that the kubelet does not count",
  needs: 'git',
  run: async (victim) => {
    const written = Object.entries(filled.parse(await inPod(victim, '/fill')));
    const total = written.reduce((sum, [, [bytes]]) => sum + bytes, 0);
    const each = written.map(([file, [bytes, why]]) => `${file} ${Math.round(bytes / 1024)} KiB (${why})`).join('; ');
    return judged(
      total <= hostBytes,
      `With a limit of ${disk} an app wrote ${Math.round(total / megabyte)} MiB: ${each}.`,
    );
  },
};

const network: Attack = {
  name: 'an app reaches the API server, the kubelet, the registry, a metadata service or another app',
  needs: 'git',
  run: async (victim) => {
    const nodes = await victim.kubectl([
      ...['get', 'nodes', '-o'],
      'jsonpath={.items[*].status.addresses[?(@.type=="InternalIP")].address}',
    ]);
    const services = await victim.kubectl([
      ...['get', 'services', '-A', '-o'],
      'jsonpath={range .items[*]}{.metadata.namespace}/{.metadata.name}/{.spec.clusterIP}:{.spec.ports[0].port}{"\\n"}{end}',
    ]);
    const own = `${await victim.appsNamespace()}/${name}/`;
    // An app that may call models is let through to where they answer, and to nothing else of the API.
    const models = /^[^/]+\/moorage-models\//;
    const addresses = [
      ...nodes.split(' ').flatMap((address) => [6443, 10_250, 2379, 5000, 22].map((port) => `${address}:${port}`)),
      ...services
        .split('\n')
        .filter(
          (line) =>
            /\/\d+\.\d+\.\d+\.\d+:\d+$/.test(line) && !line.startsWith(own) && !/dns/.test(line) && !models.test(line),
        )
        .map((line) => line.split('/').at(-1) ?? ''),
      ...['169.254.169.254:80', '168.63.129.16:80', '100.100.100.200:80'],
    ];
    const found = z.record(z.string(), z.boolean()).parse(await inPod(victim, `/reach?${addresses.join(',')}`));
    const open = addresses.filter((address) => found[address] === true);
    return judged(
      open.length === 0,
      open.length === 0 ? `${addresses.length} addresses are closed.` : `Reached: ${open.join(', ')}.`,
    );
  },
};

const self = z.object({ uid_map: z.array(z.string()), token: z.boolean(), environment: z.array(z.string()) });

const confinement: Attack = {
  name: 'an app is root on the node, or holds a cluster token',
  needs: 'git',
  run: async (victim) => {
    const { uid_map, token, environment } = self.parse(await inPod(victim, '/self'));
    const outside = Number(uid_map[1]);
    const leaked = environment.filter((each) => /^(MOORAGE_|DOCKER_)/.test(each));
    return judged(
      outside >= 65_536 && !token && leaked.length === 0,
      `Root inside is user ${outside} outside; ${token ? 'a' : 'no'} token; ${leaked.length} variables of the platform.`,
    );
  },
};

const redirect: Attack = {
  name: "an app redirects callers away from the API's origin, or to a script",
  needs: 'git',
  run: async (victim) => {
    await host(victim);
    const locations = await Promise.all(
      ['1', '2', '3', '4'].map(async (which) => {
        const { headers } = await victim.ask(`/api/projects/${name}/call/redirect?${which}`);
        return String(headers['location'] ?? '');
      }),
    );
    const passed = locations.filter((each) => each !== '');
    return judged(
      passed.length === 0,
      passed.length === 0 ? 'Four redirects were dropped.' : `Passed on: ${passed.join(', ')}.`,
    );
  },
};

const cookies: Attack = {
  name: "an app sets a cookie for the API's domain",
  needs: 'git',
  run: async (victim) => {
    await host(victim);
    const { status } = await victim.app(name);
    if (status?.url === undefined) return notTried('The app has no address.');
    const app = new URL(status.url);
    return judgeDomains(app.hostname, victim.baseUrl.hostname);
  },
};

/** A browser takes a cookie for any domain that the app's name ends in, and sends it to any name that ends in that. */
function judgeDomains(app: string, api: string): Outcome {
  const labels = app.split('.');
  const shared = labels
    .map((_, index) => labels.slice(index).join('.'))
    .find((domain) => domain.includes('.') && (api === domain || api.endsWith(`.${domain}`)));
  return judged(
    shared === undefined,
    shared === undefined
      ? `${app} and ${api} have no domain in common.`
      : `${app} may set cookies for ${shared}, which browsers send to ${api}.`,
  );
}

const probes: Attack = {
  name: "a stranger's request passes for a look of the platform",
  needs: 'git',
  run: async (victim) => {
    await host(victim);
    const url = (await victim.app(name)).status?.url ?? '';
    const direct = await victim.ask(new URL('/headers', url), { headers: { 'moorage-probe': '1' } });
    const called = await victim.ask(`/api/projects/${name}/call/headers`, { headers: { 'moorage-probe': '1' } });
    const seen = [direct, called].map(({ status, body }) => ({ status, isSeen: body.includes('moorage-probe') }));
    if (seen.every(({ isSeen }) => !isSeen) && seen.some(({ status }) => status !== 200))
      return notTried(`The app was not reached: ${seen.map(({ status }) => status).join(', ')}.`);
    return judged(
      seen.every(({ isSeen }) => !isSeen),
      seen.some(({ isSeen }) => isSeen)
        ? 'The header moorage-probe of a stranger reached an app.'
        : `The app got no such header, at its address (${direct.status}) and through the API (${called.status}).`,
    );
  },
};

export const appAttacks: readonly Attack[] = [hostFiles, probes, network, confinement, redirect, cookies];
