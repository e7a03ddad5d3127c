// The compiled rules allow exactly what the API's words allow, for any cluster and any flow.
import assert from 'node:assert/strict';
import fc from 'fast-check';
import { test } from 'vitest';
import { compile, type RuleSet } from '../../../../localnode/network-policy/compile.ts';
import { readPolicy } from '../../../../localnode/network-policy/objects/model.ts';
import { isAllowedByOracle, isAllowedByRules, type World } from '../../../support/network-policy/oracle.ts';
import { flow, world } from '../../../support/network-policy/worlds.ts';

const PODS = 6;
const inPodRange = (address: string): boolean => address.startsWith('10.244.');

function compiled({ namespaces, pods, policies }: World): RuleSet {
  const readings = policies.map(({ namespace, name, spec }) => readPolicy({ namespace, name }, spec));
  assert.deepEqual(
    readings.flatMap(({ problems }) => problems),
    [],
  );
  return compile({
    endpoints: pods.map((pod) => ({ ...pod, uid: pod.name })),
    namespaces: new Map(Object.entries(namespaces)),
    policies: readings.map(({ policy }) => policy),
  });
}

test('compiles rules that agree with the API for every flow between known addresses', () => {
  fc.assert(
    fc.property(world(PODS), fc.array(flow(PODS), { minLength: 20, maxLength: 20 }), (cluster, flows) => {
      const rules = compiled(cluster);
      const known = new Set(cluster.pods.map(({ address }) => address));
      for (const each of flows) {
        const strangers = [each.source, each.destination].filter(
          (address) => inPodRange(address) && !known.has(address),
        );
        assert.equal(
          isAllowedByRules(rules, each, inPodRange),
          strangers.length === 0 && isAllowedByOracle(cluster, each),
          JSON.stringify(each),
        );
      }
    }),
    { numRuns: 1000 },
  );
});

test('ignores the order of pods and policies', () => {
  fc.assert(
    fc.property(world(PODS), (cluster) => {
      const turned = { ...cluster, pods: cluster.pods.toReversed(), policies: cluster.policies.toReversed() };
      const sorted = (rules: RuleSet): unknown => [
        [...rules.addressSets].sort(),
        [...rules.egress.members].sort(),
        [...rules.ingress.members].sort(),
        [...rules.egress.groups].sort(),
        [...rules.ingress.groups].sort(),
      ];
      assert.deepEqual(sorted(compiled(cluster)), sorted(compiled(turned)));
    }),
    { numRuns: 200 },
  );
});

test('never matches a pod in an unknown namespace with a namespaceSelector, not even a negative one', () => {
  const { policy } = readPolicy(
    { namespace: 'one', name: 'p' },
    {
      podSelector: {},
      ingress: [{ from: [{ namespaceSelector: { matchExpressions: [{ key: 'app', operator: 'DoesNotExist' }] } }] }],
    },
  );
  const endpoint = (namespace: string, address: string): World['pods'][number] & { uid: string } => ({
    namespace,
    name: address,
    uid: address,
    labels: {},
    address,
    ports: [],
  });
  const rules = compile({
    endpoints: [endpoint('one', '10.244.0.2'), endpoint('new', '10.244.0.3')],
    namespaces: new Map([['one', {}]]),
    policies: [policy],
  });
  const from = (source: string): boolean =>
    isAllowedByRules(rules, { source, destination: '10.244.0.2', protocol: 'TCP', port: 80 }, inPodRange);
  assert.equal(from('10.244.0.3'), false);
  const later = compile({
    endpoints: [endpoint('one', '10.244.0.2'), endpoint('new', '10.244.0.3')],
    namespaces: new Map([
      ['one', {}],
      ['new', {}],
    ]),
    policies: [policy],
  });
  assert.equal(
    isAllowedByRules(later, { source: '10.244.0.3', destination: '10.244.0.2', protocol: 'TCP', port: 80 }, inPodRange),
    true,
  );
});
