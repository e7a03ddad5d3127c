// NetworkPolicy objects are read as the API defaults them; what is not understood is named and denies.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import { readPolicy, type Policy } from '../../../../../localnode/network-policy/objects/model.ts';

const NAME = { namespace: 'apps', name: 'p' };
const read = (spec: unknown): Policy => {
  const { policy, problems } = readPolicy(NAME, spec);
  assert.deepEqual(problems, []);
  return policy;
};

test('defaults policyTypes to Ingress, and to Egress too if there are egress rules', () => {
  assert.deepEqual(read({ podSelector: {} }), { ...NAME, pods: {}, ingress: [], egress: undefined });
  assert.deepEqual(read({ podSelector: {}, egress: [] }).egress, undefined);
  assert.deepEqual(read({ podSelector: {}, egress: [{}] }), {
    ...NAME,
    pods: {},
    ingress: [],
    egress: [{ peers: undefined, ports: undefined }],
  });
  assert.deepEqual(read({ podSelector: {}, policyTypes: ['Egress'], ingress: [{}] }), {
    ...NAME,
    pods: {},
    ingress: undefined,
    egress: [],
  });
});

test('allows nothing, rather than everything, in a rule whose only peers are IPv6 blocks', () => {
  const policy = read({
    podSelector: {},
    ingress: [{ from: [{ ipBlock: { cidr: 'fd00::/8', except: ['fd00:1::/32'] } }] }],
  });
  assert.deepEqual(policy.ingress, [{ peers: [], ports: undefined }]);
});

test('clears the host bits of a block', () => {
  const policy = read({
    podSelector: {},
    ingress: [{ from: [{ ipBlock: { cidr: '10.1.2.3/8', except: ['10.9.9.9/31'] } }] }],
  });
  assert.deepEqual(policy.ingress?.[0]?.peers, [
    {
      kind: 'block',
      block: { network: 10 * 2 ** 24, prefix: 8 },
      except: [{ network: 10 * 2 ** 24 + 9 * 65536 + 9 * 256 + 8, prefix: 31 }],
    },
  ]);
});

const strange: [string, object, RegExp][] = [
  ['an unknown field of a rule', { ingress: [{ from: [], scheme: 'https' }] }, /spec\.ingress\.0: .*scheme/],
  ['an unknown kind of peer', { egress: [{ to: [{ fqdn: 'a.example' }] }] }, /spec\.egress\.0\.to\.0: .*fqdn/],
  ['a peer that says nothing', { ingress: [{ from: [{}] }] }, /spec\.ingress\.0\.from\.0: needs either/],
  [
    'a block with selectors',
    { ingress: [{ from: [{ ipBlock: { cidr: '10.0.0.0/8' }, podSelector: {} }] }] },
    /needs either/,
  ],
  ['what is no CIDR', { ingress: [{ from: [{ ipBlock: { cidr: '10.0.0.0/33' } }] }] }, /ipBlock\.cidr: is not a CIDR/],
  [
    'an exception that is no CIDR',
    { ingress: [{ from: [{ ipBlock: { cidr: '10.0.0.0/8', except: ['x'] } }] }] },
    /except\.0: is not a CIDR/,
  ],
  [
    'a range from a name',
    { ingress: [{ ports: [{ port: 'http', endPort: 90 }] }] },
    /ports\.0\.endPort: needs a numeric/,
  ],
  ['a range turned round', { ingress: [{ ports: [{ port: 90, endPort: 80 }] }] }, /ports\.0\.endPort: needs a numeric/],
  ['an unknown protocol', { ingress: [{ ports: [{ protocol: 'ICMP' }] }] }, /ports\.0\.protocol/],
  [
    'an unknown operator',
    { ingress: [{ from: [{ podSelector: { matchExpressions: [{ key: 'a', operator: 'Gt', values: ['1'] }] } }] }] },
    /matchExpressions\.0\.operator/,
  ],
];
for (const [what, rules, problem] of strange) {
  test(`reports ${what}, and denies the pods that the policy selects`, () => {
    const podSelector = { matchLabels: { app: 'a' } };
    const { policy, problems } = readPolicy(NAME, { podSelector, policyTypes: ['Ingress'], ...rules });
    assert.match(problems.join('\n'), problem);
    assert.deepEqual(policy, { ...NAME, pods: podSelector, ingress: [], egress: undefined });
  });
}

test('denies as broadly as a policy could mean if its selector or types are invalid', () => {
  assert.deepEqual(readPolicy(NAME, { podSelector: { matchPhase: 'x' }, policyTypes: ['Ingress'] }).policy, {
    ...NAME,
    pods: {},
    ingress: [],
    egress: undefined,
  });
  assert.deepEqual(readPolicy(NAME, { podSelector: {}, policyTypes: ['Forward'] }).policy, {
    ...NAME,
    pods: {},
    ingress: [],
    egress: [],
  });
  assert.deepEqual(readPolicy(NAME, undefined).policy, { ...NAME, pods: {}, ingress: [], egress: [] });
});
