// Compiled policies hold for real traffic: pods on one bridge, the node, the outside world, NAT, established flows.
import assert from 'node:assert/strict';
import { execa } from 'execa';
import fc from 'fast-check';
import { test } from 'vitest';
import { derive } from '../../../../localnode/network-policy/enforcer.ts';
import { isAllowedByOracle, type Flow } from '../../../support/network-policy/oracle.ts';
import { podAddress, world } from '../../../support/network-policy/worlds.ts';
import { chooseRepetitions } from '../../../support/repetitions.ts';
import {
  ADDRESSES,
  ANSWER_MS,
  API_SERVICE,
  applier,
  denyAll,
  enforce,
  lab,
  lot,
  createSnapshot,
  selectApp,
  assertOpen,
  pod,
  SCOPE,
  SERVICE,
  assertSilent,
  skip,
  prepareBench,
} from '../../../support/network-policy/bench.ts';
import { NODE_BRIDGE, NODE_OUTSIDE, NODE_PORTS, WORLD } from '../../../support/network-policy/lab.ts';

prepareBench();

test('allows all traffic without a policy', { skip }, async () => {
  await enforce(lot());
  await assertOpen(pod(0), podAddress(1), 1);
  await assertOpen(pod(0), podAddress(1), 1, { op: 'udp' });
  await assertOpen(pod(0), WORLD[0], 1);
  await assertOpen(pod(0), NODE_BRIDGE, NODE_PORTS.kubelet);
  await assertOpen(lab.outside, podAddress(1), 1);
  await assertOpen(lab.node, podAddress(1), 1);
});

test('blocks a denied pod on its own bridge, except from its node', { skip }, async () => {
  await enforce(lot({ ...denyAll, podSelector: selectApp('pod1') }));
  await Promise.all([
    assertSilent(pod(0), podAddress(1), 1),
    assertSilent(pod(0), podAddress(1), 1, { op: 'udp' }),
    assertSilent(pod(1), podAddress(0), 1),
    assertSilent(pod(1), WORLD[0], 1),
    assertSilent(lab.outside, podAddress(1), 1),
    assertOpen(lab.node, podAddress(1), 1),
    assertOpen(pod(0), podAddress(2), 1),
  ]);
});

test('allows ingress by labels, namespace, port range and name', { skip }, async () => {
  await enforce(
    lot({
      podSelector: selectApp('pod1'),
      ingress: [
        { from: [{ podSelector: selectApp('pod0') }], ports: [{ port: 'http' }, { port: 5, endPort: 6 }] },
        {
          from: [{ namespaceSelector: { matchExpressions: [{ key: 'team', operator: 'In', values: ['b'] }] } }],
          ports: [{ protocol: 'UDP', port: 1 }],
        },
      ],
    }),
  );
  await Promise.all([
    ...[3, 5, 6].map(async (port) => assertOpen(pod(0), podAddress(1), port)),
    ...[1, 4, 7].map(async (port) => assertSilent(pod(0), podAddress(1), port)),
    assertSilent(pod(2), podAddress(1), 3),
    assertOpen(pod(3), podAddress(1), 1, { op: 'udp' }),
    assertSilent(pod(3), podAddress(1), 1),
  ]);
});

test('allows egress to the world but not to the node, the pods or the metadata address', { skip }, async () => {
  const except = ['10.0.0.0/8', '169.254.0.0/16', `${NODE_OUTSIDE}/32`];
  const rule = { to: [{ ipBlock: { cidr: '0.0.0.0/0', except } }] };
  await enforce(lot());
  await Promise.all([
    assertOpen(pod(0), WORLD[2], 1),
    assertOpen(pod(0), NODE_OUTSIDE, NODE_PORTS.ssh),
    assertOpen(pod(0), API_SERVICE, 443),
  ]);
  await enforce(lot({ podSelector: selectApp('pod0'), policyTypes: ['Egress'], egress: [rule] }));
  const closed = [NODE_BRIDGE, NODE_OUTSIDE].flatMap((address) =>
    Object.values(NODE_PORTS).map((port): [string, number] => [address, port]),
  );
  await Promise.all([
    assertOpen(pod(0), WORLD[0], 1),
    assertOpen(pod(0), WORLD[0], 1, { op: 'udp' }),
    assertOpen(pod(0), WORLD[1], 1),
    ...closed.map(async ([address, port]) => assertSilent(pod(0), address, port)),
    assertSilent(pod(0), WORLD[2], 1),
    assertSilent(pod(0), podAddress(1), 1),
    assertSilent(pod(0), API_SERVICE, 443),
    assertOpen(pod(2), NODE_BRIDGE, NODE_PORTS.ssh),
  ]);
});

test(
  'evaluates a Service and a host port for the pod behind them, and lets a pod reach itself through its Service',
  { skip },
  async () => {
    const ingress = [{ from: [{ podSelector: selectApp('pod0') }], ports: [{ port: 1 }] }];
    const egress = [{ to: [{ podSelector: selectApp('pod1') }] }];
    await enforce(
      lot(
        { podSelector: selectApp('pod1'), ingress },
        { podSelector: selectApp('pod0'), policyTypes: ['Egress'], egress },
      ),
    );
    await Promise.all([
      assertOpen(pod(0), SERVICE, 80),
      assertSilent(pod(2), SERVICE, 80),
      assertOpen(pod(1), SERVICE, 80),
      assertSilent(lab.outside, NODE_OUTSIDE, 8443),
      assertSilent(pod(0), NODE_OUTSIDE, 8443),
    ]);
    await enforce(
      lot({ podSelector: selectApp('pod1'), ingress: [{ from: [{ ipBlock: { cidr: `${WORLD[0]}/32` } }] }] }),
    );
    await assertOpen(lab.outside, NODE_OUTSIDE, 8443, { from: WORLD[0] });
    await assertSilent(lab.outside, NODE_OUTSIDE, 8443, { from: WORLD[1] });
  },
);

test('keeps open connections when rules change, and blocks new ones', { skip }, async () => {
  await enforce(lot());
  const held = await pod(0).ask({ op: 'hold', host: podAddress(1), port: 1 });
  assert(typeof held === 'number');
  await enforce(lot(denyAll));
  assert.equal(await pod(0).ask({ op: 'echo', held, waitMs: ANSWER_MS }), 'open');
  await assertSilent(pod(0), podAddress(1), 1);
});

test('blocks a pod that is not known yet, except from its node once it is attached', { skip }, async () => {
  const all = lot();
  const known = { ...all, pods: all.pods.filter(({ name }) => name !== 'pod1') };
  await enforce(known);
  await Promise.all([
    assertSilent(pod(1), podAddress(0), 1),
    assertSilent(pod(0), podAddress(1), 1),
    assertSilent(pod(1), WORLD[0], 1),
    assertSilent(pod(1), NODE_BRIDGE, NODE_PORTS.api),
    assertSilent(lab.outside, podAddress(1), 1),
  ]);
  await applier.apply(derive({ ...createSnapshot(all), pods: createSnapshot(known).pods }, SCOPE).tables);
  await Promise.all([
    assertOpen(lab.node, podAddress(1), 1),
    assertSilent(pod(1), podAddress(0), 1),
    assertSilent(pod(1), NODE_BRIDGE, NODE_PORTS.api),
  ]);
  await enforce(all);
  await assertOpen(pod(1), podAddress(0), 1);
});

test('denies the pods that an invalid policy selects, and no others', { skip }, async () => {
  const strange = {
    podSelector: selectApp('pod1'),
    policyTypes: ['Ingress'],
    ingress: [{ from: [{ serviceAccountSelector: {} }] }],
  };
  const wanted = derive(
    { ...createSnapshot(lot()), policies: [{ namespace: 'one', name: 'strange', spec: strange }] },
    SCOPE,
  );
  assert.match(wanted.refused[0]?.problems.join() ?? '', /spec\.ingress\.0\.from\.0.*serviceAccountSelector/);
  await applier.apply(wanted.tables);
  await Promise.all([
    assertSilent(pod(0), podAddress(1), 1),
    assertOpen(pod(0), podAddress(2), 1),
    assertOpen(pod(1), podAddress(0), 1),
  ]);
});

/** The kernel's tables without what differs between two equal ones: handles, counters, the order of elements. */
async function listed(): Promise<string[]> {
  const texts: string[] = [];
  for (const family of ['inet', 'bridge']) {
    const { stdout } = await execa('ip', [
      'netns',
      'exec',
      lab.node.name,
      'nft',
      '-j',
      'list',
      'table',
      family,
      SCOPE.table,
    ]);
    const { nftables } = JSON.parse(stdout) as { nftables: Record<string, { elem?: unknown[] }>[] };
    for (const entry of nftables) {
      for (const object of Object.values(entry))
        object.elem?.sort((a, b) => (JSON.stringify(a) < JSON.stringify(b) ? -1 : 1));
      texts.push(JSON.stringify(entry).replaceAll(/"(handle|packets|bytes)": ?\d+,?/g, ''));
    }
  }
  return texts.sort();
}

test(
  'property: the kernel enforces what the API specifies for any cluster, also after incremental changes',
  { skip, timeout: 300_000 },
  async () => {
    const flows: Flow[] = ADDRESSES.flatMap((source) =>
      [...ADDRESSES, WORLD[0]].flatMap((destination) =>
        (['TCP', 'UDP'] as const).flatMap((protocol) =>
          [1, 3].map((port) => ({ source, destination, protocol, port })),
        ),
      ),
    );
    const crossing = flows.filter(({ source, destination }) => source !== destination);
    await fc.assert(
      fc.asyncProperty(world(ADDRESSES.length), async (cluster) => {
        await enforce(cluster);
        // A flow of an earlier cluster that used the same ports would still be established.
        await execa('ip', ['netns', 'exec', lab.node.name, 'conntrack', '-F']);
        const known = new Set([...cluster.pods.map(({ address }) => address), WORLD[0]]);
        await Promise.all(
          crossing.map(async (flow) => {
            const allowed = known.has(flow.source) && known.has(flow.destination) && isAllowedByOracle(cluster, flow);
            const probe = allowed ? assertOpen : assertSilent;
            await probe(pod(ADDRESSES.indexOf(flow.source)), flow.destination, flow.port, {
              op: flow.protocol === 'TCP' ? 'tcp' : 'udp',
            });
          }),
        );
        const stepped = await listed();
        applier.invalidate();
        await enforce(cluster);
        assert.deepEqual(await listed(), stepped);
      }),
      { numRuns: chooseRepetitions({ usual: 10, deep: 200 }) },
    );
  },
);
