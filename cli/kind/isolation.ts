// Installs the NetworkPolicy enforcer of the kind node, and proves from inside pods that policies are enforced.
import { join } from 'node:path';
import { stringify } from 'yaml';
import { z } from 'zod';
import { applyFile, apply, type Kubectl } from '../../localnode/kubectl.ts';
import { node } from '../../localnode/node/settings.ts';
import { runNodeKubectl as kubectl } from './cluster.ts';
import { waitFor } from '../../localnode/shell.ts';

const scope = ['-n', 'kube-system'];

/** The last lines of the enforcer's log, for an error message. */
export async function readEnforcerLog(): Promise<string> {
  const log = await kubectl([...scope, 'logs', 'daemonset/moorage-network', '--tail=25']).catch(() => '');
  return `The log of the NetworkPolicy enforcer ends with:\n${log === '' ? '(nothing)' : log}`;
}

/** Installs the enforcer and waits until it enforces policies. Pods get a network only then. */
export async function installNetwork(image: string): Promise<undefined> {
  await applyFile(kubectl, join(import.meta.dirname, 'kind-network.yaml'), {
    'IMAGE:node-network': image,
    POD_BRIDGE: node.bridge,
    POD_CIDR: node.podCidr,
    NODE_POD_CIDR: node.nodePodCidr,
    SERVICE_CIDR: node.serviceCidr,
  });
  try {
    await kubectl([...scope, 'rollout', 'status', 'daemonset/moorage-network', '--timeout=120s']);
  } catch (error) {
    const pods = await kubectl([...scope, 'get', 'pods', '-l', 'app.kubernetes.io/name=moorage-network']).catch(
      () => '',
    );
    throw new Error(
      `NetworkPolicies are not enforced: the enforcer did not start within 120 s. It needs the kernel modules br_netfilter and nf_tables on the machine that runs Docker.\n${pods}\n${await readEnforcerLog()}`,
      { cause: error },
    );
  }
  await kubectl(['wait', 'nodes', '--all', '--for=condition=Ready', '--timeout=90s']);
  return undefined;
}

// The proof: a pod that a policy closes reaches nothing, and a pod next to it that no policy selects reaches the API server.

const namespace = 'moorage-isolation';

/**
 * Tries each address repeatedly for the seconds in its first argument, and prints one line per address: `reached` or
 * `closed`. A busy machine may lose a first try.
 */
const program = `
const net = require('node:net');
const [seconds, ...addresses] = process.argv.slice(1);
const end = Date.now() + Number(seconds) * 1000;
const canReach = (host, port) => new Promise((done) => {
  const socket = net.connect({ host, port, timeout: 2000 });
  const close = (answer) => () => { socket.destroy(); done(answer); };
  socket.once('connect', close(true)).once('error', close(false)).once('timeout', close(false));
});
const look = async (address) => {
  const [host, port] = address.split(':');
  for (;;) {
    if (await canReach(host, Number(port))) return address + ' reached';
    if (Date.now() > end) return address + ' closed';
    await new Promise((done) => setTimeout(done, 250));
  }
};
Promise.all(addresses.map(look)).then((lines) => console.log(lines.join('\\n')));
`;

/** How long each pod tries: the open one until the network works, the closed one long enough to show that it does not. */
const patienceSeconds = { open: 90, closed: 6 } as const;

const pods = z.object({ status: z.object({ phase: z.string().optional() }) });

function buildPod(name: 'open' | 'closed', image: string, addresses: readonly string[]): unknown {
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, namespace, labels: { 'moorage.dev/isolation': name } },
    spec: {
      restartPolicy: 'Never',
      automountServiceAccountToken: false,
      enableServiceLinks: false,
      securityContext: { runAsNonRoot: true, runAsUser: 65534, seccompProfile: { type: 'RuntimeDefault' } },
      containers: [
        {
          name: 'look',
          image,
          command: ['node', '-e', program, String(patienceSeconds[name]), ...addresses],
          securityContext: { allowPrivilegeEscalation: false, capabilities: { drop: ['ALL'] } },
        },
      ],
    },
  };
}

/** Names are fixed, so that leftovers of an interrupted proof do no harm. */
function formatManifests(image: string, control: string, closedAddresses: readonly string[]): string {
  const objects = [
    { apiVersion: 'v1', kind: 'Namespace', metadata: { name: namespace } },
    {
      apiVersion: 'networking.k8s.io/v1',
      kind: 'NetworkPolicy',
      metadata: { name: 'closed', namespace },
      spec: {
        podSelector: { matchLabels: { 'moorage.dev/isolation': 'closed' } },
        policyTypes: ['Ingress', 'Egress'],
      },
    },
    buildPod('open', image, [control]),
    buildPod('closed', image, [control, ...closedAddresses]),
  ];
  return objects.map((object) => stringify(object, { lineWidth: 0 })).join('---\n');
}

async function readReport(kubectl: Kubectl, name: 'open' | 'closed'): Promise<string> {
  await waitFor(
    `the end of the pod ${namespace}/${name}`,
    async () => {
      const { status } = pods.parse(JSON.parse(await kubectl(['-n', namespace, 'get', 'pod', name, '-o', 'json'])));
      return status.phase === 'Succeeded' || status.phase === 'Failed';
    },
    { seconds: 180, readHint: () => kubectl(['-n', namespace, 'describe', 'pod', name]).catch(() => '') },
  );
  return await readLog(kubectl, name);
}

/** The log of a pod that has ended. On a busy node its last lines arrive some time after the end; it may stay empty. */
async function readLog(kubectl: Kubectl, name: 'open' | 'closed'): Promise<string> {
  const read = (): Promise<string> => kubectl(['-n', namespace, 'logs', name]);
  return await waitFor(
    `the log of the pod ${namespace}/${name}`,
    async () => {
      const text = await read();
      return text.trim() === '' ? undefined : text;
    },
    { seconds: 15 },
  ).catch(read);
}

/** The isolation problem that the reports of the two pods show; undefined if there is none. */
export function judgeIsolation(open: string, closed: string, control: string): string | undefined {
  if (!open.split('\n').includes(`${control} reached`))
    return `the pod network does not work: a pod without any NetworkPolicy cannot reach the API server at ${control}`;
  const reached = closed.split('\n').filter((line) => line.endsWith(' reached'));
  if (reached.length === 0 && closed.includes(' closed')) return undefined;
  const addresses = reached.map((line) => line.replace(/ reached$/, '')).join(', ');
  return `NetworkPolicies are not enforced: a pod that a policy closes reached ${addresses === '' ? 'nothing, but printed no result either' : addresses}`;
}

/**
 * Tries to reach the API server, by its service address, and `others` from both pods. Throws if a policy is not enforced;
 * `cause` adds the enforcer's log to the error.
 */
export async function proveIsolation(
  kubectl: Kubectl,
  image: string,
  closedAddresses: readonly string[],
  cause: () => Promise<string>,
): Promise<string> {
  const service = await kubectl(['get', 'service', 'kubernetes', '-n', 'default', '-o', 'jsonpath={.spec.clusterIP}']);
  const control = `${service}:443`;
  const remove = ['delete', 'namespace', namespace, '--ignore-not-found', '--wait'];
  await kubectl(remove);
  try {
    await apply(kubectl, formatManifests(image, control, closedAddresses));
    const [open, closed] = await Promise.all([readReport(kubectl, 'open'), readReport(kubectl, 'closed')]);
    const problem = judgeIsolation(open, closed, control);
    if (problem !== undefined) throw new Error(`${problem}. ${await cause()}`.trim());
    return `${closedAddresses.length + 1} addresses closed to a pod`;
  } finally {
    await kubectl([...remove.slice(0, -1), '--wait=false']).catch(() => undefined);
  }
}
