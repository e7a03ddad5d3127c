// Lets the API of the local cluster ask a LiteLLM on this machine: a relay in the namespace of the demo router, which is
// the one that the API may reach, passes connections on to the node's own address. Everything is put back at the end.
import { once } from 'node:events';
import { connect, createServer, type AddressInfo, type Server } from 'node:net';
import { execa } from 'execa';
import { stringify } from 'yaml';
import { kubectl, systemNamespace } from '../cluster.ts';
import type { LiteLlm } from '../models/litellm.ts';

/** The node's address, as pods of the one-machine node see it. */
const nodeAddress = '10.244.0.1';
const namespace = 'moorage-demo-router';
const name = 'router-relay';

export interface RouterOfCluster {
  /** Puts the demo router back. */
  remove(): Promise<void>;
}

/** Points the API at the router. */
export async function useRouter(router: LiteLlm): Promise<RouterOfCluster> {
  const port = Number(new URL(router.url).port);
  const relay = await listen(port);
  const image = await kubectl(
    ...['-n', systemNamespace, 'get', 'deployment', 'moorage-api'],
    ...['-o', 'jsonpath={.spec.template.spec.containers[0].image}'],
  );
  const objects = relayObjects(image, (relay.address() as AddressInfo).port);
  await apply(objects);
  await kubectl('-n', namespace, 'rollout', 'status', `deployment/${name}`, '--timeout=60s');
  const api = ['-n', systemNamespace, 'set', 'env', 'deployment/moorage-api'];
  const before = await environment();
  await kubectl(
    ...api,
    'MOORAGE_ROUTER_KIND=litellm',
    `MOORAGE_ROUTER_URL=http://${name}.${namespace}.svc.cluster.local`,
    `MOORAGE_ROUTER_KEY=${router.key}`,
  );
  await rolledOut();
  return {
    async remove() {
      await kubectl(...api, ...before, 'MOORAGE_ROUTER_KEY-');
      await rolledOut();
      for (const { kind } of objects)
        await kubectl('-n', namespace, 'delete', kind, name, '--ignore-not-found', '--wait=false');
      relay.close();
    },
  };
}

async function environment(): Promise<string[]> {
  const list = await kubectl('-n', systemNamespace, 'set', 'env', 'deployment/moorage-api', '--list');
  return list.split('\n').filter((line) => /^MOORAGE_ROUTER_(?:KIND|URL)=/.test(line));
}

async function rolledOut(): Promise<void> {
  await kubectl('-n', systemNamespace, 'rollout', 'status', 'deployment/moorage-api', '--timeout=120s');
}

/** Passes connections to the node's address on to a port of loopback. */
async function listen(port: number): Promise<Server> {
  const server = createServer((incoming) => {
    const onward = connect(port, '127.0.0.1');
    incoming.on('error', () => onward.destroy());
    onward.on('error', () => incoming.destroy());
    incoming.pipe(onward).pipe(incoming);
  });
  server.listen(0, nodeAddress);
  await once(server, 'listening');
  return server;
}

interface ClusterObject {
  readonly apiVersion: string;
  readonly kind: string;
  readonly [member: string]: unknown;
}

function relayObjects(image: string, port: number): readonly ClusterObject[] {
  const labels = { 'app.kubernetes.io/name': name };
  const metadata = { name, namespace, labels };
  const code = `require('node:net').createServer((a) => { const b = require('node:net').connect(${port}, '${nodeAddress}'); a.on('error', () => b.destroy()); b.on('error', () => a.destroy()); a.pipe(b).pipe(a); }).listen(8080)`;
  const container = {
    name: 'relay',
    image,
    command: ['node', '-e', code],
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
        policyTypes: ['Egress'],
        egress: [{ to: [{ ipBlock: { cidr: `${nodeAddress}/32` } }], ports: [{ port, protocol: 'TCP' }] }],
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
