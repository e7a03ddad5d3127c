// The network of the kind node: installs the enforcer, waits for it, and says what keeps it from working.
import { join } from 'node:path';
import { applyFile } from '../../localnode/kubectl.ts';
import { node } from '../../localnode/node/settings.ts';
import { nodeKubectl as kubectl } from './cluster.ts';

const scope = ['-n', 'kube-system'];

/** What the enforcer logged last, for an error message. */
export async function enforcerLog(): Promise<string> {
  const log = await kubectl([...scope, 'logs', 'daemonset/moorage-network', '--tail=25']).catch(() => '');
  return `The log of the NetworkPolicy enforcer ends with:\n${log === '' ? '(nothing)' : log}`;
}

/** Installs the enforcer and waits until it enforces. Pods get a network no earlier. */
export async function installNetwork(image: string): Promise<undefined> {
  await applyFile(kubectl, join(import.meta.dirname, 'kind-network.yaml'), {
    'IMAGE:node-network': image,
    POD_BRIDGE: node.bridge,
    POD_CIDR: node.podCidr,
    NODE_POD_CIDR: node.nodePodCidr,
    SERVICE_CIDR: node.serviceCidr,
  });
  try {
    await kubectl([...scope, 'rollout', 'status', 'daemonset/moorage-network', '--timeout=120s']);
  } catch (error) {
    const pods = await kubectl([...scope, 'get', 'pods', '-l', 'app.kubernetes.io/name=moorage-network']).catch(
      () => '',
    );
    throw new Error(
      `NetworkPolicies are not enforced: the enforcer did not start within 120 s. It needs the kernel modules br_netfilter and nf_tables on the machine that runs Docker.\n${pods}\n${await enforcerLog()}`,
      { cause: error },
    );
  }
  await kubectl(['wait', 'nodes', '--all', '--for=condition=Ready', '--timeout=90s']);
  return undefined;
}
