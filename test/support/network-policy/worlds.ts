// Random clusters with policies, small enough that selectors, blocks and ports meet often. For tests.
import fc from 'fast-check';
import type { Flow, WirePeer, WirePod, WirePolicy, WirePort, WireSelector, World } from './oracle.ts';

const key = fc.constantFrom('app', 'tier');
const value = fc.constantFrom('a', 'b', 'c');
const labels = fc.dictionary(key, value, { maxKeys: 2, noNullPrototype: true });
const namespace = fc.constantFrom('one', 'two', 'three');
const protocol = fc.constantFrom('TCP' as const, 'UDP' as const, 'SCTP' as const);
const portNumber = fc.integer({ min: 1, max: 6 });
const portName = fc.constantFrom('http', 'dns');

const expression = fc.oneof(
  fc.record({
    key,
    operator: fc.constantFrom('In' as const, 'NotIn' as const),
    values: fc.array(value, { minLength: 1, maxLength: 2 }),
  }),
  fc.record({ key, operator: fc.constantFrom('Exists' as const, 'DoesNotExist' as const) }),
);
const selector: fc.Arbitrary<WireSelector> = fc.record(
  { matchLabels: labels, matchExpressions: fc.array(expression, { maxLength: 1 }) },
  { requiredKeys: [] },
);

const cidr = fc.constantFrom(
  '10.244.0.0/16',
  '10.244.0.4/30',
  '10.244.0.2/32',
  '0.0.0.0/0',
  '192.0.2.0/24',
  '192.0.2.7/25',
  'fd00::/8',
);
const peer: fc.Arbitrary<WirePeer> = fc.oneof(
  fc.record({ podSelector: selector }),
  fc.record({ namespaceSelector: selector }),
  fc.record({ podSelector: selector, namespaceSelector: selector }),
  fc.record({ ipBlock: fc.record({ cidr, except: fc.array(cidr, { maxLength: 2 }) }, { requiredKeys: ['cidr'] }) }),
);

const port: fc.Arbitrary<WirePort> = fc.oneof(
  fc.record({ protocol, port: portNumber }, { requiredKeys: ['port'] }),
  fc.record({ protocol }, { requiredKeys: [] }),
  fc.record({ protocol, port: portName }, { requiredKeys: ['port'] }),
  fc.record(
    { protocol, port: fc.integer({ min: 1, max: 3 }), endPort: fc.integer({ min: 3, max: 6 }) },
    { requiredKeys: ['port', 'endPort'] },
  ),
);

const peers = fc.array(peer, { maxLength: 2 });
const ports = fc.array(port, { maxLength: 3 });
const spec: fc.Arbitrary<WirePolicy['spec']> = fc.record(
  {
    podSelector: selector,
    policyTypes: fc.subarray(['Ingress', 'Egress'] as ('Ingress' | 'Egress')[]),
    ingress: fc.array(fc.record({ from: peers, ports }, { requiredKeys: [] }), { maxLength: 2 }),
    egress: fc.array(fc.record({ to: peers, ports }, { requiredKeys: [] }), { maxLength: 2 }),
  },
  { requiredKeys: ['podSelector'] },
);

const namedPorts = fc.uniqueArray(fc.record({ name: portName, protocol, port: portNumber }), {
  maxLength: 3,
  selector: ({ name, protocol: spoken }) => `${name}/${spoken}`,
});
const podBody = fc.record({ namespace, labels, ports: namedPorts });

/** The address of the nth pod of a world. */
export function podAddress(index: number): string {
  return `10.244.0.${index + 2}`;
}

/** A world with at most the given number of pods. */
export function world(maxPods: number): fc.Arbitrary<World> {
  const pods = fc
    .array(podBody, { minLength: 1, maxLength: maxPods })
    .map((bodies) =>
      bodies.map((body, index): WirePod => ({ ...body, name: `pod-${index}`, address: podAddress(index) })),
    );
  const policies = fc
    .array(fc.record({ namespace, spec }), { maxLength: 4 })
    .map((bodies) => bodies.map((body, index): WirePolicy => ({ ...body, name: `policy-${index}` })));
  return fc.record({ namespaces: fc.record({ one: labels, two: labels, three: labels }), pods, policies });
}

/** A flow between pods of a world, or between one and the world outside. */
export function flow(maxPods: number): fc.Arbitrary<Flow> {
  const address = fc.oneof(
    { weight: 4, arbitrary: fc.integer({ min: 0, max: maxPods - 1 }).map(podAddress) },
    { weight: 1, arbitrary: fc.constantFrom('192.0.2.7', '192.0.2.200', '8.8.8.8', '169.254.169.254') },
  );
  return fc.record({ source: address, destination: address, protocol, port: fc.integer({ min: 1, max: 7 }) });
}
