// Attacks of parts of the platform that were taken over: what the API, the gateway and the workers could do with their rights.
import { z } from 'zod';
import { annotations } from '../../../crds/names.ts';
import { judged, notTried, type Attack } from '../attack.ts';
import type { ServiceAccount, Victim } from '../victim.ts';

async function isTakenFromApi(victim: Victim, change: object): Promise<boolean> {
  const app = await victim.liveApp();
  return await victim.isTaken([
    ...['-n', app.metadata.namespace, 'patch', 'happ', app.metadata.name, '--type=merge', '--dry-run=server'],
    ...[`--as=system:serviceaccount:${victim.systemNamespace}:moorage-api`, '-p', JSON.stringify(change)],
  ]);
}

const ownership: Attack = {
  name: 'the API has an app and its volumes garbage-collected through a false owner',
  needs: 'kubectl',
  run: async (victim) => {
    const owner = { apiVersion: 'v1', kind: 'ConfigMap', name: 'gone', uid: '00000000-0000-4000-8000-000000000000' };
    const attempts = {
      owner: { metadata: { ownerReferences: [owner] } },
      finalizers: { metadata: { finalizers: [] } },
      spec: { spec: { author: { share: '1' } } },
      'the commit of a pull request': { spec: { source: { revision: 'refs/pull/5/head' } } },
      annotation: { metadata: { annotations: { 'kubectl.kubernetes.io/restartedAt': 'now' } } },
    };
    const taken: string[] = [];
    for (const [name, change] of Object.entries(attempts)) if (await isTakenFromApi(victim, change)) taken.push(name);
    return judged(
      taken.length === 0,
      taken.length === 0 ? 'Five changes were refused.' : `Taken: ${taken.join(', ')}.`,
    );
  },
};

const gatewayPods = z.object({
  items: z.array(
    z.object({
      metadata: z.object({ namespace: z.string() }),
      spec: z.object({ serviceAccountName: z.string().default('default') }),
    }),
  ),
});

const gateway: Attack = {
  name: 'the gateway reads every Secret',
  needs: 'kubectl',
  run: async (victim) => {
    const labels = (await victim.settings())['MOORAGE_GATEWAY_NAMESPACE_LABELS'] ?? '';
    const namespaces = (
      await victim.kubectl(['get', 'namespaces', '-l', labels, '-o', 'jsonpath={.items[*].metadata.name}'])
    ).split(' ');
    const accounts = new Map<string, ServiceAccount>();
    for (const namespace of namespaces.filter((each) => each !== '')) {
      const { items } = gatewayPods.parse(
        JSON.parse(await victim.kubectl(['-n', namespace, 'get', 'pods', '-o', 'json'])),
      );
      for (const { metadata, spec } of items)
        accounts.set(`${metadata.namespace}/${spec.serviceAccountName}`, {
          namespace: metadata.namespace,
          name: spec.serviceAccountName,
        });
    }
    if (accounts.size === 0) return notTried('No pod of the gateway was found.');
    const readers: string[] = [];
    for (const [name, account] of accounts) {
      for (const namespace of [victim.systemNamespace, await victim.appsNamespace()])
        for (const verb of ['get', 'list'])
          if (await victim.may(account, verb, 'secrets', namespace))
            readers.push(`${name} may ${verb} those of ${namespace}`);
    }
    return judged(
      readers.length === 0,
      readers.length === 0 ? `${[...accounts.keys()].join(', ')} may not.` : `${readers.join('; ')}.`,
    );
  },
};

const listing: Attack = {
  name: 'the API or the operator reads Secrets, or runs a program in a pod',
  needs: 'kubectl',
  run: async (victim) => {
    const namespaces = [victim.systemNamespace, await victim.appsNamespace(), await victim.buildsNamespace()];
    const open: string[] = [];
    for (const who of ['moorage-api', 'moorage-operator'])
      for (const namespace of namespaces)
        for (const [verb, what] of [
          ['get', 'secrets'],
          ['list', 'secrets'],
          ['create', 'pods/exec'],
        ] as const) {
          if (await victim.may({ namespace: victim.systemNamespace, name: who }, verb, what, namespace))
            open.push(`${who} may ${verb} ${what} in ${namespace}`);
        }
    return judged(
      open.length === 0,
      open.length === 0 ? 'Eighteen rights were asked for; none is there.' : `${open.join('; ')}.`,
    );
  },
};

type Fields = Readonly<Record<string, unknown>>;

const disk = { quantity: '64Mi', bytes: 64 * 1024 ** 2 };

/** A pod that the policies take, but for what is added to it. */
function pod({ spec = {}, container = {} }: { spec?: Fields; container?: Fields }, runtimeClass: string): string {
  return JSON.stringify({
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: 'attack', annotations: { [annotations.disk]: String(disk.bytes) } },
    spec: {
      hostUsers: false,
      automountServiceAccountToken: false,
      ...(runtimeClass === '' ? {} : { runtimeClassName: runtimeClass }),
      containers: [
        {
          name: 'app',
          image: 'example.invalid/none',
          resources: { limits: { cpu: '100m', memory: '64Mi', 'ephemeral-storage': disk.quantity } },
          securityContext: {
            allowPrivilegeEscalation: false,
            capabilities: { drop: ['ALL'] },
            seccompProfile: { type: 'RuntimeDefault' },
          },
          ...container,
        },
      ],
      ...spec,
    },
  });
}

const greed: Readonly<Record<string, { spec?: Fields; container?: Fields }>> = {
  priority: { spec: { priorityClassName: 'system-node-critical' } },
  node: { spec: { nodeName: 'any' } },
  tolerations: { spec: { tolerations: [{ operator: 'Exists' }] } },
  sysctls: { spec: { securityContext: { sysctls: [{ name: 'net.ipv4.ping_group_range', value: '0 1' }] } } },
  'user namespace': { spec: { hostUsers: true } },
  'host path': { spec: { volumes: [{ name: 'host', hostPath: { path: '/' } }] } },
  'host network': { spec: { hostNetwork: true } },
  token: { spec: { automountServiceAccountToken: true } },
  privileged: { container: { securityContext: { privileged: true } } },
};

const sandbox: Attack = {
  name: 'a pod of an app or a build requests more than the sandbox allows',
  needs: 'kubectl',
  run: async (victim) => {
    const namespaces = {
      [await victim.appsNamespace()]: (await victim.settings())['MOORAGE_RUNTIME_CLASS'] ?? '',
      [await victim.buildsNamespace()]: '',
    };
    const taken: string[] = [];
    for (const [namespace, runtimeClass] of Object.entries(namespaces)) {
      const create = ['-n', namespace, 'create', '--dry-run=server', '-f', '-'];
      // Else each of them could be refused for something that all have in common.
      if (!(await victim.isTaken(create, pod({}, runtimeClass))))
        return notTried(`A pod that asks for nothing more is refused in ${namespace}, too.`);
      for (const [what, more] of Object.entries(greed))
        if (await victim.isTaken(create, pod(more, runtimeClass))) taken.push(`${what} in ${namespace}`);
    }
    const count = Object.keys(greed).length * Object.keys(namespaces).length;
    return judged(
      taken.length === 0,
      taken.length === 0 ? `${count} pods were refused.` : `Taken: ${taken.join(', ')}.`,
    );
  },
};

/** What code in a worker could read: printed as JSON, by the same Node that runs it. */
const looting = `const fs = require('node:fs');
const secrets = fs.existsSync('/var/run/secrets');
const others = fs.readdirSync('/proc').filter((pid) => /^[0-9]+$/.test(pid) && Number(pid) !== process.pid).filter((pid) => { try { return /api.main|controller.main/.test(fs.readFileSync('/proc/' + pid + '/cmdline', 'utf8')); } catch { return false; } });
const named = Object.keys(process.env).filter((name) => /SECRET|KEY|TOKEN|SALT|DATABASE|PASSWORD/.test(name));
const dial = (host, port) => new Promise((done) => { const socket = require('node:net').connect({ host, port, timeout: 2000 }); socket.on('connect', () => done(true)); for (const event of ['error', 'timeout']) socket.on(event, () => { socket.destroy(); done(false); }); });
Promise.all([dial(process.env.KUBERNETES_SERVICE_HOST, 443), dial('1.1.1.1', 443)]).then((reached) => { console.log(JSON.stringify({ uid: process.getuid(), secrets, others: others.length, named, reached: reached.filter(Boolean).length })); process.exit(0); });`;

const loot = z.object({
  uid: z.number(),
  secrets: z.boolean(),
  others: z.number(),
  named: z.array(z.string()),
  reached: z.number(),
});

const workers: Attack = {
  name: "native code in a worker of the tools reads the API's secrets, token or processes, or reaches the network",
  needs: 'kubectl',
  run: async (victim) => {
    const text = await victim.kubectl([
      ...['-n', victim.systemNamespace, 'exec', 'deploy/moorage-workers', '--', 'node', '-e', looting],
    ]);
    const { uid, secrets, others, named, reached } = loot.parse(JSON.parse(text.trim().split('\n').at(-1) ?? ''));
    return judged(
      uid !== 0 && !secrets && others === 0 && named.length === 0 && reached === 0,
      `As user ${uid} it found ${secrets ? 'Secrets' : 'no Secret'}, ${others} processes of others, ${named.length} variables that sound like a secret, and reached ${reached} of 2 addresses.`,
    );
  },
};

export const rightsAttacks: readonly Attack[] = [ownership, gateway, listing, workers, sandbox];
