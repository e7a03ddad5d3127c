// Compiled policies hold for real traffic: pods on one bridge, the node, the outside world, NAT, forged sources.
import assert from 'node:assert/strict';
import { after, before, beforeEach, test } from 'node:test';
import { execa } from 'execa';
import fc from 'fast-check';
import { createApplier, nftRunner, type Applier } from '../../cluster/network-policy/apply.ts';
import type { Pod } from '../../cluster/network-policy/endpoints.ts';
import { removeScript } from '../../cluster/network-policy/script.ts';
import { derive, type Observed } from '../../cluster/network-policy/state.ts';
import { oracleAllows, type Flow, type WirePolicy, type World } from '../cluster/network-policy/oracle.ts';
import { podAddress, world } from '../cluster/network-policy/worlds.ts';
import { arpFrame, datagramFrame } from './network-policy-frames.ts';
import { installTools, NODE_BRIDGE, NODE_OUTSIDE, NODE_PORTS, openLab, WORLD, type Lab, type Place, type PodPlace } from './network-policy-lab.ts';

const skip = process.platform === 'linux' && process.getuid?.() === 0 ? false : 'needs root on Linux';
const SCOPE = { table: 'moorage-policy', bridge: 'moorage0', podCidr: '10.244.0.0/16' };
const ADDRESSES = [0, 1, 2, 3].map(podAddress);
const PORTS = [1, 2, 3, 4, 5, 6, 7];
const SERVICE = '10.96.0.50';
const API_SERVICE = '10.96.0.1';
/** Long enough for a loaded machine when an answer is expected; when none is, waiting longer would prove no more. */
const [ANSWER_MS, SILENCE_MS] = [15_000, 400];

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

let lab: Lab;
let applier: Applier;
const pod = (index: number): PodPlace => lab.pods[index] ?? assert.fail(`no pod ${index}`);

before(async () => {
  if (skip !== false) return;
  await installTools();
  lab = await openLab(ADDRESSES);
  await nftRunner(lab.nft)(NAT);
  await Promise.all([...lab.pods, lab.outside].map(async (place) => place.ask({ op: 'listen', ports: PORTS })));
});
after(async () => {
  if (skip === false) await lab.close();
});
beforeEach(async () => {
  if (skip !== false) return;
  applier = createApplier(nftRunner(lab.nft));
  await nftRunner(lab.nft)(removeScript({ family: 'inet', name: SCOPE.table }) + removeScript({ family: 'bridge', name: SCOPE.table }));
  await lab.node.sysctl('net.bridge.bridge-nf-call-iptables=1');
});

function observed(cluster: World): Observed {
  const pods = cluster.pods.map(({ namespace, name, labels, address, ports }): Pod => ({
    metadata: { namespace, name, uid: name, labels, annotations: {} },
    spec: { containers: [{ ports: ports.map(({ name: port, protocol, port: containerPort }) => ({ name: port, protocol, containerPort })) }], initContainers: [] },
    status: { phase: 'Running', podIP: address },
  }));
  const attachments = cluster.pods.map(({ namespace, name, address }) => {
    const { port, mac } = pod(ADDRESSES.indexOf(address));
    return { namespace, name, uid: name, port, mac, address };
  });
  return { pods, attachments, namespaces: new Map(Object.entries(cluster.namespaces)), policies: cluster.policies };
}

/** Four pods: three in `one`, labelled app=pod0.. and naming port 3 `http` on pod 1; the last in `two`. */
function lot(...policies: WirePolicy['spec'][]): World {
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

async function enforce(cluster: World): Promise<void> {
  await applier.apply(derive(observed(cluster), SCOPE).tables);
}

async function opens(place: Place, host: string, port: number, options: { op?: 'tcp' | 'udp'; from?: string } = {}): Promise<void> {
  const { op = 'tcp', from = '' } = options;
  assert.equal(await place.ask({ op, host, port, from, waitMs: ANSWER_MS }), 'open', `${place.name} to ${host}:${port} should be open`);
}

async function silent(place: Place, host: string, port: number, options: { op?: 'tcp' | 'udp'; from?: string } = {}): Promise<void> {
  const { op = 'tcp', from = '' } = options;
  assert.equal(await place.ask({ op, host, port, from, waitMs: SILENCE_MS }), 'silent', `${place.name} to ${host}:${port} should be closed`);
}

const only = (app: string): { matchLabels: { app: string } } => ({ matchLabels: { app } });
const denyAll = { podSelector: {}, policyTypes: ['Ingress' as const, 'Egress' as const] };

test('without a policy everything flows', { skip }, async () => {
  await enforce(lot());
  await opens(pod(0), podAddress(1), 1);
  await opens(pod(0), podAddress(1), 1, { op: 'udp' });
  await opens(pod(0), WORLD[0], 1);
  await opens(pod(0), NODE_BRIDGE, NODE_PORTS.kubelet);
  await opens(lab.outside, podAddress(1), 1);
  await opens(lab.node, podAddress(1), 1);
});

test('a denied pod sends and hears nothing on its own bridge, and its node still reaches it', { skip }, async () => {
  await enforce(lot({ ...denyAll, podSelector: only('pod1') }));
  await Promise.all([
    silent(pod(0), podAddress(1), 1),
    silent(pod(0), podAddress(1), 1, { op: 'udp' }),
    silent(pod(1), podAddress(0), 1),
    silent(pod(1), WORLD[0], 1),
    silent(lab.outside, podAddress(1), 1),
    opens(lab.node, podAddress(1), 1),
    opens(pod(0), podAddress(2), 1),
  ]);
});

test('ingress by labels, namespace, port range and name', { skip }, async () => {
  await enforce(
    lot({
      podSelector: only('pod1'),
      ingress: [
        { from: [{ podSelector: only('pod0') }], ports: [{ port: 'http' }, { port: 5, endPort: 6 }] },
        { from: [{ namespaceSelector: { matchExpressions: [{ key: 'team', operator: 'In', values: ['b'] }] } }], ports: [{ protocol: 'UDP', port: 1 }] },
      ],
    }),
  );
  await Promise.all([
    ...[3, 5, 6].map(async (port) => opens(pod(0), podAddress(1), port)),
    ...[1, 4, 7].map(async (port) => silent(pod(0), podAddress(1), port)),
    silent(pod(2), podAddress(1), 3),
    opens(pod(3), podAddress(1), 1, { op: 'udp' }),
    silent(pod(3), podAddress(1), 1),
  ]);
});

test('egress to the world but not to the node, the pods or the metadata address', { skip }, async () => {
  const except = ['10.0.0.0/8', '169.254.0.0/16', `${NODE_OUTSIDE}/32`];
  const rule = { to: [{ ipBlock: { cidr: '0.0.0.0/0', except } }] };
  await enforce(lot());
  await Promise.all([opens(pod(0), WORLD[2], 1), opens(pod(0), NODE_OUTSIDE, NODE_PORTS.ssh), opens(pod(0), API_SERVICE, 443)]);
  await enforce(lot({ podSelector: only('pod0'), policyTypes: ['Egress'], egress: [rule] }));
  const closed = [NODE_BRIDGE, NODE_OUTSIDE].flatMap((address) => Object.values(NODE_PORTS).map((port): [string, number] => [address, port]));
  await Promise.all([
    opens(pod(0), WORLD[0], 1),
    opens(pod(0), WORLD[0], 1, { op: 'udp' }),
    opens(pod(0), WORLD[1], 1),
    ...closed.map(async ([address, port]) => silent(pod(0), address, port)),
    silent(pod(0), WORLD[2], 1),
    silent(pod(0), podAddress(1), 1),
    silent(pod(0), API_SERVICE, 443),
    opens(pod(2), NODE_BRIDGE, NODE_PORTS.ssh),
  ]);
});

test('a Service and a host port are judged by the pod behind them, and a pod reaches itself through its Service', { skip }, async () => {
  const ingress = [{ from: [{ podSelector: only('pod0') }], ports: [{ port: 1 }] }];
  const egress = [{ to: [{ podSelector: only('pod1') }] }];
  await enforce(lot({ podSelector: only('pod1'), ingress }, { podSelector: only('pod0'), policyTypes: ['Egress'], egress }));
  await Promise.all([
    opens(pod(0), SERVICE, 80),
    silent(pod(2), SERVICE, 80),
    opens(pod(1), SERVICE, 80),
    silent(lab.outside, NODE_OUTSIDE, 8443),
    silent(pod(0), NODE_OUTSIDE, 8443),
  ]);
  await enforce(lot({ podSelector: only('pod1'), ingress: [{ from: [{ ipBlock: { cidr: `${WORLD[0]}/32` } }] }] }));
  await opens(lab.outside, NODE_OUTSIDE, 8443, { from: WORLD[0] });
  await silent(lab.outside, NODE_OUTSIDE, 8443, { from: WORLD[1] });
});

test('an open connection outlives a change of rules; a new one does not come about', { skip }, async () => {
  await enforce(lot());
  const held = await pod(0).ask({ op: 'hold', host: podAddress(1), port: 1 });
  assert(typeof held === 'number');
  await enforce(lot(denyAll));
  assert.equal(await pod(0).ask({ op: 'echo', held, waitMs: ANSWER_MS }), 'open');
  await silent(pod(0), podAddress(1), 1);
});

test('a pod that is not known yet sends and hears nothing, except from its node once it is attached', { skip }, async () => {
  const all = lot();
  const known = { ...all, pods: all.pods.filter(({ name }) => name !== 'pod1') };
  await enforce(known);
  await Promise.all([silent(pod(1), podAddress(0), 1), silent(pod(0), podAddress(1), 1), silent(pod(1), WORLD[0], 1), silent(pod(1), NODE_BRIDGE, NODE_PORTS.api), silent(lab.outside, podAddress(1), 1)]);
  await applier.apply(derive({ ...observed(all), pods: observed(known).pods }, SCOPE).tables);
  await Promise.all([opens(lab.node, podAddress(1), 1), silent(pod(1), podAddress(0), 1), silent(pod(1), NODE_BRIDGE, NODE_PORTS.api)]);
  await enforce(all);
  await opens(pod(1), podAddress(0), 1);
});

test('a policy that is not understood denies the pods that it selects, and no others', { skip }, async () => {
  const strange = { podSelector: only('pod1'), policyTypes: ['Ingress'], ingress: [{ from: [{ serviceAccountSelector: {} }] }] };
  const wanted = derive({ ...observed(lot()), policies: [{ namespace: 'one', name: 'strange', spec: strange }] }, SCOPE);
  assert.match(wanted.refused[0]?.problems.join() ?? '', /spec\.ingress\.0\.from\.0.*serviceAccountSelector/);
  await applier.apply(wanted.tables);
  await Promise.all([silent(pod(0), podAddress(1), 1), opens(pod(0), podAddress(2), 1), opens(pod(1), podAddress(0), 1)]);
});

test('the loopback services of the node are closed to pods even where loopback is routed', { skip }, async () => {
  await pod(0).sysctl('net.ipv4.conf.all.route_localnet=1');
  await pod(0).ip('addr', 'del', '127.0.0.1/8', 'dev', 'lo');
  await pod(0).ip('route', 'add', '127.0.0.0/8', 'via', NODE_BRIDGE);
  try {
    await opens(pod(0), '127.0.0.1', NODE_PORTS.api, { from: podAddress(0) });
    await enforce(lot());
    await silent(pod(0), '127.0.0.1', NODE_PORTS.api, { from: podAddress(0) });
  } finally {
    await pod(0).ip('route', 'del', '127.0.0.0/8', 'via', NODE_BRIDGE);
    await pod(0).ip('addr', 'add', '127.0.0.1/8', 'dev', 'lo');
  }
});

test('a pod that gives itself the address of another is not heard', { skip }, async () => {
  const stolen = '10.244.0.99';
  await pod(0).ip('addr', 'add', `${stolen}/24`, 'dev', 'eth0');
  try {
    await opens(pod(0), podAddress(1), 1, { from: stolen });
    await enforce(lot());
    await silent(pod(0), podAddress(1), 1, { from: stolen });
    await silent(pod(0), NODE_BRIDGE, NODE_PORTS.api, { from: stolen });
    await opens(pod(0), podAddress(1), 1, { from: podAddress(0) });
  } finally {
    await pod(0).ip('addr', 'del', `${stolen}/24`, 'dev', 'eth0');
  }
});

/** Sends the forged frame, then an honest one by the same way; what is heard by then tells whether the first got through. */
async function getsThrough(text: string, forged: Uint8Array): Promise<boolean> {
  await pod(0).sendFrame(forged);
  await opens(pod(0), podAddress(1), 2, { op: 'udp' });
  const heard = await pod(1).ask({ op: 'heard' });
  assert(Array.isArray(heard));
  return heard.includes(text);
}

test('frames forged to go around the rules do not arrive', { skip }, async () => {
  const from = { mac: pod(0).mac, address: podAddress(0) };
  const to = { mac: pod(1).mac, address: podAddress(1) };
  // A port of its own for each, so that none belongs to a flow that an earlier one opened.
  let fromPort = 40_000;
  const frame = (text: string, change: object): [string, Uint8Array] => [text, datagramFrame({ from, to, fromPort: fromPort++, port: 1, text, ...change })];
  assert.equal(await getsThrough(...frame('tagged, no rules', { vlan: 0 })), true, 'the frames of this test are well formed');
  assert.equal(await getsThrough(...frame('forged, no rules', { from: { ...from, address: podAddress(2) } })), true);
  const ingress = [{ from: [{ podSelector: only('pod2') }], ports: [{ protocol: 'UDP' as const, port: 1 }] }, { ports: [{ protocol: 'UDP' as const, port: 2 }] }];
  await enforce(lot({ podSelector: only('pod1'), ingress }));
  assert.equal(await getsThrough(...frame('plain', {})), false, 'denied by the policy');
  assert.equal(await getsThrough(...frame('tagged', { vlan: 0 })), false, 'a priority tag hides the packet from br_netfilter');
  assert.equal(await getsThrough(...frame('forged address', { from: { ...from, address: podAddress(2) } })), false);
  assert.equal(await getsThrough(...frame('forged sender', { from: { mac: pod(2).mac, address: podAddress(2) } })), false);
  assert.equal(await getsThrough(...frame('broadcast', { to: { ...to, address: '255.255.255.255' } })), false);
});

test('a pod cannot announce the address of another as its own', { skip }, async () => {
  const neighbour = async (): Promise<string> => (await execa('ip', ['-n', pod(2).name, 'neigh', 'show', podAddress(1)])).stdout;
  await opens(pod(2), podAddress(1), 1);
  await pod(0).sendFrame(arpFrame({ mac: pod(0).mac, address: podAddress(1) }));
  await opens(pod(0), podAddress(2), 1);
  assert.match(await neighbour(), new RegExp(pod(0).mac), 'the announcement of this test is well formed');
  await pod(1).sendFrame(arpFrame({ mac: pod(1).mac, address: podAddress(1) }));
  await opens(pod(2), podAddress(1), 1);
  await enforce(lot());
  await pod(0).sendFrame(arpFrame({ mac: pod(0).mac, address: podAddress(1) }));
  await opens(pod(0), podAddress(2), 1);
  assert.doesNotMatch(await neighbour(), new RegExp(pod(0).mac));
});

test('when bridged packets are not shown to the rules, they do not pass', { skip }, async () => {
  await enforce(lot());
  await opens(pod(0), podAddress(1), 1);
  await lab.node.sysctl('net.bridge.bridge-nf-call-iptables=0');
  await silent(pod(0), podAddress(1), 1);
});

/** The kernel's tables without what differs between two equal ones: handles, counters, the order of elements. */
async function listed(): Promise<string[]> {
  const texts: string[] = [];
  for (const family of ['inet', 'bridge']) {
    const { stdout } = await execa('ip', ['netns', 'exec', lab.node.name, 'nft', '-j', 'list', 'table', family, SCOPE.table]);
    const { nftables } = JSON.parse(stdout) as { nftables: Record<string, { elem?: unknown[] }>[] };
    for (const entry of nftables) {
      for (const object of Object.values(entry)) object.elem?.sort((a, b) => (JSON.stringify(a) < JSON.stringify(b) ? -1 : 1));
      texts.push(JSON.stringify(entry).replaceAll(/"(handle|packets|bytes)": ?\d+,?/g, ''));
    }
  }
  return texts.sort();
}

test('for any cluster the kernel does what the API says, also after step-by-step changes', { skip, timeout: 300_000 }, async () => {
  const flows: Flow[] = ADDRESSES.flatMap((source) => [...ADDRESSES, WORLD[0]].flatMap((destination) => (['TCP', 'UDP'] as const).flatMap((protocol) => [1, 3].map((port) => ({ source, destination, protocol, port })))));
  const crossing = flows.filter(({ source, destination }) => source !== destination);
  await fc.assert(
    fc.asyncProperty(world(ADDRESSES.length), async (cluster) => {
      await enforce(cluster);
      // A flow of an earlier cluster that used the same ports would still be established.
      await execa('ip', ['netns', 'exec', lab.node.name, 'conntrack', '-F']);
      const known = new Set([...cluster.pods.map(({ address }) => address), WORLD[0]]);
      await Promise.all(
        crossing.map(async (flow) => {
          const allowed = known.has(flow.source) && known.has(flow.destination) && oracleAllows(cluster, flow);
          const probe = allowed ? opens : silent;
          await probe(pod(ADDRESSES.indexOf(flow.source)), flow.destination, flow.port, { op: flow.protocol === 'TCP' ? 'tcp' : 'udp' });
        }),
      );
      const stepped = await listed();
      applier.distrust();
      await enforce(cluster);
      assert.deepEqual(await listed(), stepped);
    }),
    { numRuns: 20 },
  );
});
