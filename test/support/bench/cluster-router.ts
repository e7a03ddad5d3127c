// Lets the API of the local cluster ask a LiteLLM on this machine. Pods reach nothing of the node, so it goes the other
// way round: this machine connects to a relay pod, in the namespace of the demo router, which the API may reach, and the
// relay gives each connection of the API one of those. Everything is put back at the end.
import { connect, type Socket } from 'node:net';
import { execa } from 'execa';
import { stringify } from 'yaml';
import { runKubectl, systemNamespace } from '../cluster.ts';
import type { LiteLlm } from '../models/litellm.ts';

const namespace = 'moorage-demo-router';
const name = 'router-relay';
const waitingPort = 9000;
/** Connections that wait at the relay; a used one is replaced at once. */
const waiting = 32;
const retryMs = 500;

export interface RouterOfCluster {
  /** Puts the demo router back. */
  remove(): Promise<void>;
}

/** Points the API at the router. */
export async function useRouter(router: LiteLlm): Promise<RouterOfCluster> {
  const port = Number(new URL(router.url).port);
  const image = await runKubectl(
    ...['-n', systemNamespace, 'get', 'deployment', 'moorage-api'],
    ...['-o', 'jsonpath={.spec.template.spec.containers[0].image}'],
  );
  const objects = relayObjects(image);
  await apply(objects);
  await runKubectl('-n', namespace, 'rollout', 'status', `deployment/${name}`, '--timeout=60s');
  const pod = await runKubectl(
    '-n',
    namespace,
    'get',
    'pods',
    '-l',
    `app.kubernetes.io/name=${name}`,
    '-o',
    podAddress,
  );
  const offer = offerConnections(pod, port);
  const api = ['-n', systemNamespace, 'set', 'env', 'deployment/moorage-api'];
  const before = await environment();
  await runKubectl(
    ...api,
    'MOORAGE_ROUTER_KIND=litellm',
    `MOORAGE_ROUTER_URL=http://${name}.${namespace}.svc.cluster.local`,
    `MOORAGE_ROUTER_KEY=${router.key}`,
  );
  await rolledOut();
  return {
    async remove() {
      await runKubectl(...api, ...before, 'MOORAGE_ROUTER_KEY-');
      await rolledOut();
      for (const { kind } of objects)
        await runKubectl('-n', namespace, 'delete', kind, name, '--ignore-not-found', '--wait=false');
      offer.end();
    },
  };
}

async function environment(): Promise<string[]> {
  const list = await runKubectl('-n', systemNamespace, 'set', 'env', 'deployment/moorage-api', '--list');
  return list.split('\n').filter((line) => /^MOORAGE_ROUTER_(?:KIND|URL)=/.test(line));
}

async function rolledOut(): Promise<void> {
  await runKubectl('-n', systemNamespace, 'rollout', 'status', 'deployment/moorage-api', '--timeout=120s');
}

const podAddress = 'jsonpath={.items[0].status.podIP}';

/** Keeps connections waiting at the relay; what comes on one goes to this port of loopback. */
function offerConnections(relay: string, port: number): { end: () => void } {
  const open = new Set<Socket>();
  let isOver = false;
  const add = (): void => {
    if (isOver) return;
    const offered = connect(waitingPort, relay);
    open.add(offered);
    offered.once('data', (first) => {
      add();
      const onward = connect(port, '127.0.0.1');
      onward.write(first);
      offered.pipe(onward).pipe(offered);
      onward.on('error', () => offered.destroy());
      offered.on('error', () => onward.destroy());
    });
    offered.on('error', () => undefined);
    offered.once('close', () => {
      open.delete(offered);
      if (offered.bytesRead === 0) setTimeout(add, retryMs).unref();
    });
  };
  for (let count = 0; count < waiting; count += 1) add();
  return {
    end() {
      isOver = true;
      for (const each of open) each.destroy();
    },
  };
}

interface ClusterObject {
  readonly apiVersion: string;
  readonly kind: string;
  readonly [member: string]: unknown;
}

/** What the relay runs: connections of the one port are paired with those of the other, in the order in which they came. */
const relayCode = `
const net = require('node:net');
const [asking, offered] = [[], []];
const keep = (list, socket) => {
  list.push(socket);
  socket.once('close', () => list.includes(socket) && list.splice(list.indexOf(socket), 1));
};
const pair = (a, b) => {
  a.on('error', () => b.destroy());
  b.on('error', () => a.destroy());
  a.pipe(b).pipe(a);
};
const serve = (own, others, port) =>
  net.createServer((socket) => {
    socket.on('error', () => undefined);
    const other = others.shift();
    if (other === undefined) keep(own, socket);
    else pair(socket, other);
  }).listen(port);
serve(asking, offered, 8080);
serve(offered, asking, ${waitingPort});`;

function relayObjects(image: string): readonly ClusterObject[] {
  const labels = { 'app.kubernetes.io/name': name };
  const metadata = { name, namespace, labels };
  const container = {
    name: 'relay',
    image,
    command: ['node', '-e', relayCode],
    ports: [{ containerPort: 8080 }],
    readinessProbe: { tcpSocket: { port: 8080 }, periodSeconds: 2 },
    securityContext: { allowPrivilegeEscalation: false, capabilities: { drop: ['ALL'] } },
  };
  const securityContext = { runAsNonRoot: true, runAsUser: 1000, seccompProfile: { type: 'RuntimeDefault' } };
  return [
    {
      apiVersion: 'apps/v1',
      kind: 'Deployment',
      metadata,
      spec: {
        selector: { matchLabels: labels },
        template: {
          metadata: { labels },
          spec: { automountServiceAccountToken: false, securityContext, containers: [container] },
        },
      },
    },
    {
      apiVersion: 'v1',
      kind: 'Service',
      metadata,
      spec: { selector: labels, ports: [{ port: 80, targetPort: 8080 }] },
    },
    {
      apiVersion: 'networking.k8s.io/v1',
      kind: 'NetworkPolicy',
      metadata,
      spec: {
        podSelector: { matchLabels: labels },
        policyTypes: ['Ingress'],
        ingress: [{ from: [{ ipBlock: { cidr: '10.244.0.1/32' } }], ports: [{ port: waitingPort, protocol: 'TCP' }] }],
      },
    },
  ];
}

async function apply(objects: readonly ClusterObject[]): Promise<void> {
  await execa('.moorage/kubectl', ['apply', '-f', '-'], {
    env: { KUBECONFIG: '.moorage/kubeconfig' },
    input: objects.map((object) => stringify(object)).join('---\n'),
  });
}
