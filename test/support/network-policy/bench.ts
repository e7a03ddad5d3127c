// A lab with rules: what the tests on real traffic share.
import assert from 'node:assert/strict';
import { afterAll, beforeAll, beforeEach } from 'vitest';
import { createApplier, createNftRunner, type Applier } from '../../../localnode/network-policy/tables/apply.ts';
import type { Pod } from '../../../localnode/network-policy/objects/endpoints.ts';
import { removeScript } from '../../../localnode/network-policy/tables/script.ts';
import { derive, type Snapshot } from '../../../localnode/network-policy/enforcer.ts';
import type { WirePolicy, World } from './oracle.ts';
import { podAddress } from './worlds.ts';
import { runExclusively } from '../exclusively.ts';
import { installTools, NODE_OUTSIDE, NODE_PORTS, openLab, type Lab, type NetworkHost, type PodHost } from './lab.ts';

/** The tests need root on Linux. */
export const skip = process.platform !== 'linux' || process.getuid?.() !== 0;
export const SCOPE = { table: 'moorage-policy', bridge: 'moorage0', podCidr: '10.244.0.0/16' };
export const ADDRESSES = [0, 1, 2, 3].map(podAddress);
const PORTS = [1, 2, 3, 4, 5, 6, 7];
export const SERVICE = '10.96.0.50';
export const API_SERVICE = '10.96.0.1';
/** Long enough for a loaded machine when an answer is expected; when none is, waiting longer would prove no more. */
export const [ANSWER_MS, SILENCE_MS] = [15_000, 400];

const NAT = `
table ip lab-nat {
  chain prerouting { type nat hook prerouting priority -100;
    ip daddr ${SERVICE} tcp dport 80 dnat to ${podAddress(1)}:1
    ip daddr ${API_SERVICE} tcp dport 443 dnat to ${NODE_OUTSIDE}:${NODE_PORTS.api}
    ip daddr ${NODE_OUTSIDE} tcp dport 8443 dnat to ${podAddress(1)}:2
  }
  chain postrouting { type nat hook postrouting priority 100;
    ip saddr 10.244.0.0/16 ip daddr != 10.244.0.0/16 masquerade
    ip saddr . ip daddr { ${ADDRESSES.map((address) => `${address} . ${address}`).join(', ')} } masquerade
  }
}
`;

export let lab: Lab;
export let applier: Applier;
export const pod = (index: number): PodHost => lab.pods[index] ?? assert.fail(`no pod ${index}`);

/** Opens the lab for the tests of this file, and begins each of them without tables. */
export function prepareBench(): void {
  beforeAll(async () => {
    if (skip) return;
    await runExclusively(installTools);
    lab = await openLab(ADDRESSES);
    await createNftRunner(lab.nft)(NAT);
    await Promise.all([...lab.pods, lab.outside].map(async (host) => host.ask({ op: 'listen', ports: PORTS })));
  });
  afterAll(async () => {
    if (!skip) await lab.close();
  });
  beforeEach(async () => {
    if (skip) return;
    applier = createApplier(createNftRunner(lab.nft));
    await createNftRunner(lab.nft)(
      removeScript({ family: 'inet', name: SCOPE.table }) + removeScript({ family: 'bridge', name: SCOPE.table }),
    );
    await lab.node.sysctl('net.bridge.bridge-nf-call-iptables=1');
  });
}

export function createSnapshot(cluster: World): Snapshot {
  const pods = cluster.pods.map(({ namespace, name, labels, address, ports }): Pod => ({
    metadata: { namespace, name, uid: name, labels, annotations: {} },
    spec: {
      containers: [
        {
          ports: ports.map(({ name: port, protocol, port: containerPort }) => ({
            name: port,
            protocol,
            containerPort,
          })),
        },
      ],
      initContainers: [],
    },
    status: { phase: 'Running', podIP: address },
  }));
  const attachments = cluster.pods.map(({ namespace, name, address }) => {
    const { port, mac } = pod(ADDRESSES.indexOf(address));
    return { namespace, name, uid: name, port, mac, address };
  });
  return { pods, attachments, namespaces: new Map(Object.entries(cluster.namespaces)), policies: cluster.policies };
}

/** Four pods: three in `one`, labelled app=pod0.. and naming port 3 `http` on pod 1; the last in `two`. */
export function lot(...policies: WirePolicy['spec'][]): World {
  return {
    namespaces: { one: { team: 'a' }, two: { team: 'b' } },
    pods: ADDRESSES.map((address, index) => ({
      namespace: index === 3 ? 'two' : 'one',
      name: `pod${index}`,
      labels: { app: `pod${index}` },
      address,
      ports: index === 1 ? [{ name: 'http', protocol: 'TCP' as const, port: 3 }] : [],
    })),
    policies: policies.map((spec, index) => ({ namespace: 'one', name: `policy${index}`, spec })),
  };
}

export async function enforce(cluster: World): Promise<void> {
  await applier.apply(derive(createSnapshot(cluster), SCOPE).tables);
}

export async function assertOpen(
  source: NetworkHost,
  host: string,
  port: number,
  options: { op?: 'tcp' | 'udp'; from?: string } = {},
): Promise<void> {
  const { op = 'tcp', from = '' } = options;
  assert.equal(
    await source.ask({ op, host, port, from, waitMs: ANSWER_MS }),
    'open',
    `${source.name} to ${host}:${port} should be open`,
  );
}

export async function assertSilent(
  source: NetworkHost,
  host: string,
  port: number,
  options: { op?: 'tcp' | 'udp'; from?: string } = {},
): Promise<void> {
  const { op = 'tcp', from = '' } = options;
  assert.equal(
    await source.ask({ op, host, port, from, waitMs: SILENCE_MS }),
    'silent',
    `${source.name} to ${host}:${port} should be closed`,
  );
}

export const selectApp = (app: string): { matchLabels: { app: string } } => ({ matchLabels: { app } });
export const denyAll = { podSelector: {}, policyTypes: ['Ingress' as const, 'Egress' as const] };
