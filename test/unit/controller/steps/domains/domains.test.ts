// Which app has a domain: the first one that proves it, until the proof is gone, in every order of lookups and reconciles.
import assert from 'node:assert/strict';
import { beforeEach, test } from 'vitest';
import { formatDomainProof, type OwnDomain } from '../../../../../crds/domains.ts';
import type { HostedApp, HostedAppStatus } from '../../../../../crds/hosted-app.ts';
import { activator, annotations } from '../../../../../crds/names.ts';
import type { Gateway, HttpRoute } from '../../../../../controller/objects/kinds.ts';
import type { InstallationConfig } from '../../../../../controller/reconcile/installation-config.ts';
import { createOnce } from '../../../../../controller/reconcile/reconcile.ts';
import { decideDomains, type DomainsDecision } from '../../../../../controller/steps/domains/domains.ts';
import type { DomainAnswer } from '../../../../../controller/steps/domains/proof.ts';
import { ApiError, type KubeObject, type Manifest } from '../../../../../lib/kubernetes/index.ts';
import { app, config, createSnapshot, now as start } from '../../../../support/operator/scenario.ts';

const hour = 3_600_000;
const domain = 'shop.example.com';
const domains: InstallationConfig['domains'] = {
  namespace: 'moorage-domains',
  issuer: { kind: 'ClusterIssuer', name: 'letsencrypt' },
  ...{ gatewayClass: 'traefik', httpsPort: 443, resolvers: [] },
  platform: ['moorage.test', 'apps.test'],
  ...{ intervalMs: hour, graceMs: 72 * hour },
};

const strict = { ...config, gateway: { ...config.gateway, hstsSeconds: 1_000 } };

/** What the cluster has, by name. */
let routes: Map<string, HttpRoute>;
let gateways: Map<string, Gateway>;
let secrets: string[];
let now: Date;

beforeEach(() => {
  routes = new Map();
  gateways = new Map();
  secrets = [];
  now = start;
});

class Author {
  readonly identity: { readonly name: string; readonly uid: string };
  domains: OwnDomain[] = [];
  status: HostedAppStatus = {};
  control: object = {};

  constructor(name: string, uid = `uid-${name}`) {
    this.identity = { name, uid };
  }

  get proof(): string {
    return formatDomainProof(this.identity, domain, config.site).txt.value;
  }

  add(name = domain): this {
    this.domains = [...this.domains, { name, addedAt: now.toISOString() }];
    return this;
  }

  get app(): HostedApp {
    const base = app({ control: { ...this.control, domains: this.domains } }, this.status);
    return { ...base, metadata: { ...base.metadata, ...this.identity } };
  }

  /** One reconcile, with what a lookup found, if one has ended. */
  reconcile(answer?: Partial<DomainAnswer>, isOffered = true): DomainsDecision {
    const own = <T extends KubeObject>(all: Map<string, T>): T[] =>
      [...all.values()].filter(({ metadata }) => metadata.labels?.['moorage.dev/app'] === this.identity.name);
    const byName = Object.fromEntries(
      this.domains.map(({ name }) => [name, { texts: [], aliases: [], ...answer } satisfies DomainAnswer]),
    );
    const snapshot = createSnapshot(this.app, {
      ...{ now, config: { ...strict, domains: isOffered ? domains : undefined } },
      domains: {
        answers: answer === undefined ? undefined : { startedAt: now, byName },
        routes: own(routes),
        gateways: own(gateways),
        findRoute: (name) => routes.get(name),
      },
    });
    const decision = decideDomains(snapshot, {});
    for (const action of decision.actions) carryOut(action);
    this.status = decision.statuses === undefined ? {} : { domains: decision.statuses };
    return decision;
  }

  /** Reconciles until nothing changes. */
  settle(answer?: Partial<DomainAnswer>): string {
    this.reconcile(answer);
    this.reconcile();
    return this.state;
  }

  get state(): string {
    return this.status.domains?.map(({ state }) => state).join(' ') ?? 'none';
  }

  get isOwner(): boolean {
    return routes.get(domain)?.metadata.ownerReferences?.[0]?.uid === this.identity.uid;
  }
}

let version = 0;
function toStored(manifest: Manifest, status: object): KubeObject {
  version += 1;
  const metadata = { uid: `uid-${version}`, resourceVersion: `${version}`, creationTimestamp: start.toISOString() };
  return { ...manifest, metadata: { ...metadata, ...manifest.metadata }, status } as KubeObject;
}

function carryOut(action: DomainsDecision['actions'][number]): void {
  const stored = (kind: string): Map<string, KubeObject> => (kind === 'Gateway' ? gateways : routes);
  const isTrue = (type: string): object => ({ type, status: 'True' });
  if (action.kind === 'create') {
    const { manifest } = action;
    // The API server answers AlreadyExists.
    if (!routes.has(manifest.metadata.name)) routes.set(manifest.metadata.name, toStored(manifest, {}));
  } else if (action.kind === 'apply') {
    const { manifest } = action;
    const { name, uid } = manifest.metadata as Manifest['metadata'] & { uid?: string };
    assert.ok(manifest.kind === 'Gateway' || uid === routes.get(name)?.metadata.uid, 'a route of another app');
    const parentRef = (manifest['spec'] as { parentRefs?: object[] }).parentRefs?.[0];
    const status =
      manifest.kind === 'Gateway'
        ? { listeners: [{ name: 'https', conditions: ['ResolvedRefs', 'Programmed'].map(isTrue) }] }
        : { parents: [{ parentRef, conditions: [isTrue('Accepted')] }] };
    stored(manifest.kind).set(name, toStored(manifest, status));
  } else if (action.kind === 'delete') {
    stored(action.object.kind).delete(action.object.metadata.name);
  } else if (action.kind === 'deleteNamed') secrets.push(`${action.ref.namespace}/${action.ref.name}`);
}

function wait(ms: number): void {
  now = new Date(now.getTime() + ms);
}

test('a domain is asked for, proven, claimed, and served with a Gateway and a certificate of its own', () => {
  const author = new Author('hello').add();
  const first = author.reconcile();
  assert.deepEqual([first.actions, author.state], [[{ kind: 'prove', domains: [domain] }], 'Pending']);
  assert.equal(author.settle({}), 'Pending');
  assert.equal(routes.size, 0);
  author.reconcile({ texts: ['unrelated', author.proof] });
  assert.deepEqual([author.state, author.isOwner, gateways.size], ['Issuing', true, 0]);
  author.reconcile();
  author.reconcile();
  assert.equal(author.state, 'Active');
  const [gateway] = [...gateways.values()] as unknown as { metadata: Manifest['metadata']; spec: object }[];
  assert.equal(gateway?.metadata.annotations?.['cert-manager.io/cluster-issuer'], 'letsencrypt');
  assert.equal(gateway.metadata.annotations[annotations.appUid], 'uid-hello');
  assert.deepEqual(gateway.spec, {
    gatewayClassName: 'traefik',
    listeners: [
      {
        ...{ name: 'https', protocol: 'HTTPS', port: 443, hostname: domain },
        tls: { mode: 'Terminate', certificateRefs: [{ group: '', kind: 'Secret', name: gateway.metadata.name }] },
        allowedRoutes: {
          namespaces: {
            ...{ from: 'Selector', selector: { matchLabels: { 'kubernetes.io/metadata.name': 'moorage-apps' } } },
          },
        },
      },
    ],
  });
});

test('a protected app is protected at its domain too, and a domain has no Strict-Transport-Security', () => {
  const author = new Author('hello').add();
  author.control = { access: 'key' };
  assert.equal(author.settle({ texts: [author.proof] }), 'Issuing');
  const { rules } = (routes.get(domain) as unknown as { spec: { rules: object[] } }).spec;
  assert.match(JSON.stringify(rules), new RegExp(`"${activator.name}"`));
  assert.doesNotMatch(JSON.stringify(rules), /Strict-Transport-Security/);
});

test('of two apps with a proof the first one gets the domain, and the second one waits', () => {
  const [one, two] = [new Author('one').add(), new Author('two').add()];
  const both = { texts: [one.proof, two.proof] };
  two.reconcile(both);
  one.reconcile(both);
  assert.deepEqual([two.isOwner, one.isOwner], [true, false]);
  one.reconcile(both);
  assert.equal(one.state, 'Taken');
  assert.equal(one.settle(), 'Taken');
  two.settle();
  assert.equal(two.settle(both), 'Active');
});

test('the owner of a domain moves it from an app whose proof is gone to another one, and the first does not get it back by itself', () => {
  const [old, next] = [new Author('old').add(), new Author('next').add()];
  old.settle({ texts: [old.proof] });
  old.settle();
  assert.equal(old.state, 'Active');
  wait(10 * 60_000);
  next.reconcile({ texts: [next.proof] });
  assert.ok(next.isOwner);
  // The cluster reports the route as deleted. The last lookup of the old app still found its proof.
  const { actions } = old.reconcile();
  assert.deepEqual(
    actions.map(({ kind }) => kind),
    ['prove'],
  );
  assert.equal(old.settle({ texts: [next.proof] }), 'Removed');
  assert.deepEqual([next.isOwner, next.settle(), next.settle()], [true, 'Active', 'Active']);
  assert.ok([...gateways.values()].every(({ metadata }) => metadata.annotations?.[annotations.appUid] === 'uid-next'));
  assert.equal(secrets.length, 1);
});

test('an answer that is not whole takes nothing from anybody', () => {
  const [old, next] = [new Author('old').add(), new Author('next').add()];
  old.settle({ texts: [old.proof] });
  next.reconcile({ texts: [next.proof], error: 'ESERVFAIL' });
  assert.deepEqual([old.isOwner, next.state], [true, 'Taken']);
});

test('DNS that does not answer is no lost proof, however long', () => {
  const author = new Author('hello').add();
  author.settle({ texts: [author.proof] });
  for (let day = 0; day < 30; day += 1) {
    wait(24 * hour);
    assert.equal(author.settle({ error: 'ETIMEOUT' }), 'Active');
  }
  assert.equal(author.status.domains?.[0]?.lookupError, 'ETIMEOUT');
  assert.ok(author.isOwner);
});

test('a lost proof keeps the domain for the grace time, is back if it comes back, and ends it otherwise', () => {
  const author = new Author('hello').add();
  author.settle({ texts: [author.proof] });
  wait(hour);
  assert.equal(author.settle({}), 'ProofLost');
  assert.match(author.status.domains?.[0]?.message ?? '', /before 2026-11-24T13:00:00Z/);
  wait(hour);
  assert.equal(author.settle({ texts: [author.proof] }), 'Active');
  assert.equal(author.status.domains?.[0]?.lostAt, undefined);
  wait(hour);
  author.settle({});
  wait(73 * hour);
  // Nobody looked in the meantime: it is asked once more before the domain is given up.
  const { actions } = author.reconcile();
  assert.ok(actions.some(({ kind }) => kind === 'prove') && author.state === 'ProofLost');
  assert.equal(author.settle({ error: 'ESERVFAIL' }), 'ProofLost');
  assert.equal(author.settle({}), 'Removed');
  assert.deepEqual([routes.size, gateways.size, secrets.length], [0, 0, 1]);
  assert.equal(author.settle({ texts: [author.proof] }), 'Issuing');
});

test('a domain that the author removes is given up, and so is each when the installation stops to offer them', () => {
  const author = new Author('hello').add();
  author.settle({ texts: [author.proof] });
  author.domains = [];
  assert.equal(author.settle(), 'none');
  assert.deepEqual([routes.size, gateways.size], [0, 0]);
  author.add().settle({ texts: [author.proof] });
  author.reconcile(undefined, false);
  assert.deepEqual([routes.size, author.state], [0, 'none']);
});

test('a later app of the same name does not inherit the domain, nor the records', () => {
  const author = new Author('hello').add();
  author.settle({ texts: [author.proof] });
  const namesake = new Author('hello', 'uid-later').add();
  // The garbage collector has not deleted the route of the first one yet.
  namesake.settle({ texts: [author.proof] });
  assert.deepEqual([namesake.state, namesake.isOwner], ['Pending', false]);
});

test('names that no app gets are refused, no matter who wrote them into the HostedApp', () => {
  const author = new Author('hello').add('moorage.test').add('hello.apps.test').add('co.uk').add('x.svc');
  const { actions, afterMs } = author.reconcile();
  assert.deepEqual([author.state, actions, afterMs], ['Refused Refused Refused Refused', [], undefined]);
});

test('looks often for a new proof, more and more rarely, and not for ever; a request is done at once', () => {
  const author = new Author('hello').add();
  const pauses: (number | undefined)[] = [];
  for (let round = 0; round < 60; round += 1) {
    const { afterMs } = author.reconcile({});
    pauses.push(afterMs === undefined ? undefined : Math.round(afterMs / 1000));
    wait(afterMs ?? 24 * hour);
  }
  assert.deepEqual(pauses.slice(0, 3), [30, 30, 30]);
  assert.equal(Math.max(...pauses.map((pause) => pause ?? 0)), 3_600);
  wait(20 * 24 * hour);
  author.reconcile({});
  assert.equal(author.reconcile().afterMs, undefined);
  wait(1_000);
  author.domains = author.domains.map((each) => ({ ...each, checkAfter: now.toISOString() }));
  wait(1_000);
  assert.ok(author.reconcile().actions.some(({ kind }) => kind === 'prove'));
});

test('a claim that met a conflict of the quota is made again, and one that came second is not', async () => {
  const first = new Author('hello').add();
  first.reconcile();
  const { actions } = first.reconcile({ texts: [first.proof] });
  const action = actions.find(({ kind }) => kind === 'create');
  assert.ok(action?.kind === 'create');
  const create = (reason: string): Promise<void> =>
    createOnce(
      { create: () => Promise.reject(new ApiError(409, reason, 'refused')) },
      action,
      AbortSignal.timeout(1_000),
    );
  await assert.rejects(create('Conflict'), { reason: 'Conflict' });
  await create('AlreadyExists');
});
