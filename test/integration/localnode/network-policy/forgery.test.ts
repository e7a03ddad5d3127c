// What a pod can forge with NET_ADMIN or a raw socket does not get it around the rules: addresses, frames, ARP, VLAN
// tags.
import assert from 'node:assert/strict';
import { execa } from 'execa';
import { test } from 'vitest';
import { derive } from '../../../../localnode/network-policy/enforcer.ts';
import { podAddress } from '../../../support/network-policy/worlds.ts';
import {
  applier,
  enforce,
  lab,
  lot,
  createSnapshot,
  selectApp,
  assertOpen,
  pod,
  SCOPE,
  assertSilent,
  skip,
  prepareBench,
} from '../../../support/network-policy/bench.ts';
import { arpFrame, datagramFrame } from '../../../support/network-policy/frames.ts';
import { NODE_BRIDGE, NODE_PORTS } from '../../../support/network-policy/lab.ts';

prepareBench();

test("closes the node's loopback services to pods even if loopback is routed", { skip }, async () => {
  await pod(0).sysctl('net.ipv4.conf.all.route_localnet=1');
  await pod(0).ip('addr', 'del', '127.0.0.1/8', 'dev', 'lo');
  await pod(0).ip('route', 'add', '127.0.0.0/8', 'via', NODE_BRIDGE);
  try {
    await assertOpen(pod(0), '127.0.0.1', NODE_PORTS.api, { from: podAddress(0) });
    await enforce(lot());
    await assertSilent(pod(0), '127.0.0.1', NODE_PORTS.api, { from: podAddress(0) });
  } finally {
    await pod(0).ip('route', 'del', '127.0.0.0/8', 'via', NODE_BRIDGE);
    await pod(0).ip('addr', 'add', '127.0.0.1/8', 'dev', 'lo');
  }
});

test("drops packets of a pod that gives itself another's address", { skip }, async () => {
  const stolen = '10.244.0.99';
  await pod(0).ip('addr', 'add', `${stolen}/24`, 'dev', 'eth0');
  try {
    await assertOpen(pod(0), podAddress(1), 1, { from: stolen });
    await enforce(lot());
    await assertSilent(pod(0), podAddress(1), 1, { from: stolen });
    await assertSilent(pod(0), NODE_BRIDGE, NODE_PORTS.api, { from: stolen });
    await assertOpen(pod(0), podAddress(1), 1, { from: podAddress(0) });
  } finally {
    await pod(0).ip('addr', 'del', `${stolen}/24`, 'dev', 'eth0');
  }
});

test('blocks IPv6 between pods', { skip }, async () => {
  for (const index of [0, 1]) await pod(index).ip('addr', 'add', `fd00::${index + 2}/64`, 'dev', 'eth0', 'nodad');
  await assertOpen(pod(0), 'fd00::3', 1, { op: 'udp' });
  await enforce(lot());
  await assertSilent(pod(0), 'fd00::3', 1, { op: 'udp' });
});

/**
 * Sends the forged frame, then an honest one by the same way; what is heard by then shows whether the first got
 * through.
 */
async function getsThrough(text: string, forged: Uint8Array): Promise<boolean> {
  await pod(0).sendFrame(forged);
  await assertOpen(pod(0), podAddress(1), 2, { op: 'udp' });
  const heard = await pod(1).ask({ op: 'heard' });
  assert(Array.isArray(heard));
  return heard.includes(text);
}

test('drops frames forged to bypass the rules', { skip }, async () => {
  const from = { mac: pod(0).mac, address: podAddress(0) };
  const to = { mac: pod(1).mac, address: podAddress(1) };
  // A port of its own for each, so that none belongs to a flow that an earlier one opened.
  let fromPort = 40_000;
  const frame = (text: string, change: object): [string, Uint8Array] => [
    text,
    datagramFrame({ from, to, fromPort: fromPort++, port: 1, text, ...change }),
  ];
  assert.equal(
    await getsThrough(...frame('tagged, no rules', { vlan: 0 })),
    true,
    'the frames of this test are well formed',
  );
  assert.equal(await getsThrough(...frame('forged, no rules', { from: { ...from, address: podAddress(2) } })), true);
  const ingress = [
    { from: [{ podSelector: selectApp('pod2') }], ports: [{ protocol: 'UDP' as const, port: 1 }] },
    { ports: [{ protocol: 'UDP' as const, port: 2 }] },
  ];
  assert.equal(await getsThrough(...frame('broadcast, no rules', { to: { ...to, address: '255.255.255.255' } })), true);
  await enforce(lot({ podSelector: selectApp('pod1'), ingress }));
  assert.equal(await getsThrough(...frame('plain', {})), false, 'denied by the policy');
  assert.equal(
    await getsThrough(...frame('tagged', { vlan: 0 })),
    false,
    'a priority tag hides the packet from br_netfilter',
  );
  assert.equal(await getsThrough(...frame('forged address', { from: { ...from, address: podAddress(2) } })), false);
  assert.equal(
    await getsThrough(...frame('forged sender', { from: { mac: pod(2).mac, address: podAddress(2) } })),
    false,
  );
  assert.equal(await getsThrough(...frame('broadcast', { to: { ...to, address: '255.255.255.255' } })), false);
  await applier.apply(derive({ ...createSnapshot(lot()), attachments: undefined }, SCOPE).tables);
  assert.equal(
    await getsThrough(...frame('broadcast, no guard', { to: { ...to, address: '255.255.255.255' } })),
    false,
  );
});

test('drops packets of a pod that helps another one to impersonate a third', { skip }, async () => {
  const from = { mac: pod(0).mac, address: podAddress(0) };
  const posing = (text: string, fromPort: number): [string, Uint8Array] => [
    text,
    datagramFrame({ from, to: { mac: pod(1).mac, address: podAddress(2) }, fromPort, port: 1, text }),
  ];
  await pod(1).ip('addr', 'add', `${podAddress(2)}/32`, 'dev', 'lo');
  try {
    assert.equal(await getsThrough(...posing('posing, no rules', 41_000)), true);
    await enforce(lot());
    assert.equal(await getsThrough(...posing('posing', 41_001)), false);
  } finally {
    await pod(1).ip('addr', 'del', `${podAddress(2)}/32`, 'dev', 'lo');
  }
});

test("keeps a pod from announcing another's address", { skip }, async () => {
  const neighbour = async (): Promise<string> =>
    (await execa('ip', ['-n', pod(2).name, 'neigh', 'show', podAddress(1)])).stdout;
  await assertOpen(pod(2), podAddress(1), 1);
  await pod(0).sendFrame(arpFrame({ mac: pod(0).mac, address: podAddress(1) }));
  await assertOpen(pod(0), podAddress(2), 1);
  assert.match(await neighbour(), new RegExp(pod(0).mac), 'the announcement of this test is well formed');
  await pod(1).sendFrame(arpFrame({ mac: pod(1).mac, address: podAddress(1) }));
  await assertOpen(pod(2), podAddress(1), 1);
  await enforce(lot());
  await pod(0).sendFrame(arpFrame({ mac: pod(0).mac, address: podAddress(1) }));
  await assertOpen(pod(0), podAddress(2), 1);
  assert.doesNotMatch(await neighbour(), new RegExp(pod(0).mac));
});

test('drops bridged packets that the rules do not see', { skip }, async () => {
  await enforce(lot());
  await assertOpen(pod(0), podAddress(1), 1);
  await lab.node.sysctl('net.bridge.bridge-nf-call-iptables=0');
  await assertSilent(pod(0), podAddress(1), 1);
});
