// Proof, from inside a pod, that NetworkPolicies are enforced: one that a policy closes reaches nothing, one beside it
// that no policy selects reaches the API server.
import { stringify } from 'yaml';
import { z } from 'zod';
import { apply, type Kubectl } from '../../localnode/kubectl.ts';
import { waitFor } from '../../localnode/wait.ts';

const namespace = 'moorage-isolation';

/**
 * Tries each address again and again, for as many seconds as its first argument says, and prints one line for each:
 * `reached` or `closed`. A busy machine may lose a first try.
 */
const program = `
const net = require('node:net');
const [seconds, ...addresses] = process.argv.slice(1);
const end = Date.now() + Number(seconds) * 1000;
const reaches = (host, port) => new Promise((done) => {
  const socket = net.connect({ host, port, timeout: 2000 });
  const close = (answer) => () => { socket.destroy(); done(answer); };
  socket.once('connect', close(true)).once('error', close(false)).once('timeout', close(false));
});
const look = async (address) => {
  const [host, port] = address.split(':');
  for (;;) {
    if (await reaches(host, Number(port))) return address + ' reached';
    if (Date.now() > end) return address + ' closed';
    await new Promise((done) => setTimeout(done, 250));
  }
};
Promise.all(addresses.map(look)).then((lines) => console.log(lines.join('\\n')));
`;

/** How long each pod tries: the open one until the network works, the closed one as long as shows that it does not. */
const patienceSeconds = { open: 90, closed: 6 } as const;

const pods = z.object({ status: z.object({ phase: z.string().optional() }) });

function podOf(name: 'open' | 'closed', image: string, addresses: readonly string[]): unknown {
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

/** Each policy and namespace is named once, so that what an earlier, interrupted proof left does no harm. */
function manifests(image: string, control: string, others: readonly string[]): string {
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
    podOf('open', image, [control]),
    podOf('closed', image, [control, ...others]),
  ];
  return objects.map((object) => stringify(object, { lineWidth: 0 })).join('---\n');
}

async function report(kubectl: Kubectl, name: 'open' | 'closed'): Promise<string> {
  await waitFor(
    `the end of the pod ${namespace}/${name}`,
    async () => {
      const { status } = pods.parse(JSON.parse(await kubectl(['-n', namespace, 'get', 'pod', name, '-o', 'json'])));
      return status.phase === 'Succeeded' || status.phase === 'Failed';
    },
    { seconds: 180, hint: () => kubectl(['-n', namespace, 'describe', 'pod', name]).catch(() => '') },
  );
  return await logOf(kubectl, name);
}

/** The log of a pod that has ended. On a busy node its last lines come some time after its end; none is one as well. */
async function logOf(kubectl: Kubectl, name: 'open' | 'closed'): Promise<string> {
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

/** What is wrong with isolation according to what the two pods reported; undefined when nothing is. */
export function judgeIsolation(open: string, closed: string, control: string): string | undefined {
  if (!open.split('\n').includes(`${control} reached`))
    return `the pod network does not work: a pod without any NetworkPolicy cannot reach the API server at ${control}`;
  const reached = closed.split('\n').filter((line) => line.endsWith(' reached'));
  if (reached.length === 0 && closed.includes(' closed')) return undefined;
  const addresses = reached.map((line) => line.replace(/ reached$/, '')).join(', ');
  return `NetworkPolicies are not enforced: a pod that a policy closes reached ${addresses === '' ? 'nothing, but printed no result either' : addresses}`;
}

/**
 * Looks from both pods at the API server, by its service address, and at `others`. Throws with the cause when a policy
 * does not hold; `cause` adds what the enforcer says about it.
 */
export async function proveIsolation(
  kubectl: Kubectl,
  image: string,
  others: readonly string[],
  cause: () => Promise<string>,
): Promise<string> {
  const service = await kubectl(['get', 'service', 'kubernetes', '-n', 'default', '-o', 'jsonpath={.spec.clusterIP}']);
  const control = `${service}:443`;
  const remove = ['delete', 'namespace', namespace, '--ignore-not-found', '--wait'];
  await kubectl(remove);
  try {
    await apply(kubectl, manifests(image, control, others));
    const [open, closed] = await Promise.all([report(kubectl, 'open'), report(kubectl, 'closed')]);
    const problem = judgeIsolation(open, closed, control);
    if (problem !== undefined) throw new Error(`${problem}. ${await cause()}`.trim());
    return `${others.length + 1} addresses closed to a pod`;
  } finally {
    await kubectl([...remove.slice(0, -1), '--wait=false']).catch(() => undefined);
  }
}
