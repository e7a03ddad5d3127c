// Attacks on previews, whose code is a stranger's: secrets, money, names and rights that a preview could get.
import { group, kind, labels, version } from '../../../crds/names.ts';
import { judged, notTried, type Attack, type Outcome } from '../attack.ts';
import type { Victim } from '../victim.ts';

const apiVersion = `${group}/${version}`;

interface Change {
  readonly name?: string;
  readonly owners?: readonly object[];
  readonly spec?: object;
}

/** A preview of a live app as the operator would make it, but for the change. */
async function buildPreview(victim: Victim, { name, owners, spec = {} }: Change): Promise<string> {
  const { metadata } = await victim.liveApp();
  const owner = { apiVersion, kind, name: metadata.name, uid: metadata.uid, controller: true };
  return JSON.stringify({
    ...{ apiVersion, kind },
    metadata: {
      name: name ?? 'attacked--pr-987654321',
      namespace: metadata.namespace,
      labels: { [labels.app]: metadata.name },
      ownerReferences: owners ?? [owner],
    },
    spec: {
      source: { repo: 'https://github.com/owner/name', revision: 'a'.repeat(40) },
      models: { enabled: false, dailyBudgetUsd: '0' },
      agents: { enabled: false },
      author: { share: '0' },
      previewOf: { app: metadata.name, reference: 'refs/pull/987654321/head' },
      ...spec,
    },
  });
}

async function isTaken(victim: Victim, change: Change, account?: string): Promise<boolean> {
  const identity = account === undefined ? [] : [`--as=system:serviceaccount:${victim.systemNamespace}:${account}`];
  const args = ['-n', await victim.appsNamespace(), 'create', '--dry-run=server', ...identity, '-f', '-'];
  return victim.isTaken(args, await buildPreview(victim, change));
}

/** An attack in which every one of these previews must be refused, where one without the change is taken. */
function refuseEach(name: string, changes: Readonly<Record<string, Change>>): Attack {
  return {
    name,
    needs: 'kubectl',
    async run(victim): Promise<Outcome> {
      // Else each could be refused for something that all have in common.
      if (!(await isTaken(victim, {}))) return notTried('A preview that asks for nothing is refused, too.');
      const taken: string[] = [];
      for (const [what, change] of Object.entries(changes)) if (await isTaken(victim, change)) taken.push(what);
      const count = Object.keys(changes).length;
      return judged(
        taken.length === 0,
        taken.length === 0 ? `${count} previews were refused.` : `Taken: ${taken.join(', ')}.`,
      );
    },
  };
}

const readSecrets = refuseEach('the preview of a pull request gets the secrets of an app', {
  'a Secret of the namespace': { spec: { run: { secrets: [{ name: 'KEY', secret: 'payments', key: 'key' }] } } },
  'a Secret of the namespace in a component': {
    spec: { components: [{ name: 'web', kind: 'web', secrets: [{ name: 'KEY', secret: 'payments', key: 'key' }] }] },
  },
  'secrets of the author': { spec: { control: { secrets: [{ name: 'KEY', version: 1 }], secretVersion: 1 } } },
  'variables of the author': { spec: { control: { env: [{ name: 'KEY', value: 'x' }] } } },
});

const spendModels = refuseEach('the preview of a pull request calls models on the account of the app', {
  models: { spec: { models: { enabled: true, dailyBudgetUsd: '0' } } },
  'a budget': { spec: { models: { enabled: false, dailyBudgetUsd: '1' } } },
});

const earnShare = refuseEach('the preview of a pull request earns a share, or offers its operations to agents', {
  'a share': { spec: { author: { share: '1' } } },
  operations: { spec: { agents: { enabled: true } } },
});

const keepResources = refuseEach(
  'the preview of a pull request multiplies itself, keeps its data or waives the review',
  {
    'a task': { spec: { tasks: [{ name: 'mine', command: ['true'], schedule: '* * * * *' }] } },
    replicas: { spec: { run: { replicas: 20 } } },
    data: { spec: { deletionPolicy: 'Retain' } },
    waivers: { spec: { review: { waivers: [{ rule: 'license/missing', reason: 'because' }] } } },
    'a branch that moves by itself': { spec: { source: { repo: 'https://github.com/o/n', revision: 'main' } } },
  },
);

const takeName = refuseEach('a preview takes the name of an app, or an app that of a preview', {
  'a preview called like an app': { name: 'attacked' },
  'a preview called like the platform': { name: 'admin' },
  'an app called like a preview': { name: 'attacked--pr-987654321', spec: { previewOf: undefined } },
});

const misuseRights: Attack = {
  name: 'a process of the platform that was taken over makes apps, or previews of no app',
  needs: 'kubectl',
  async run(victim) {
    if (!(await isTaken(victim, {}, 'moorage-operator'))) return notTried('The operator may create no preview at all.');
    const attempts: Readonly<Record<string, readonly [account: string, change: Change]>> = {
      'an app by the operator': ['moorage-operator', { name: 'attacked', spec: { previewOf: undefined } }],
      'a preview without an owner': ['moorage-operator', { owners: [] }],
      'a preview by the API': ['moorage-api', {}],
    };
    const taken: string[] = [];
    for (const [what, [account, change]] of Object.entries(attempts))
      if (await isTaken(victim, change, account)) taken.push(what);
    return judged(
      taken.length === 0,
      taken.length === 0 ? 'Three objects were refused.' : `Taken: ${taken.join(', ')}.`,
    );
  },
};

export const previewAttacks: readonly Attack[] = [
  readSecrets,
  spendModels,
  earnShare,
  keepResources,
  takeName,
  misuseRights,
];
