// What a pipeline Job is given: names in the registry that no later app of the same name shares, and whose turn it is.
import assert from 'node:assert/strict';
import type { V1JobSpec, V1PodSpec } from '@kubernetes/client-node';
import { test } from 'vitest';
import { pipelineInput, type PipelineInput } from '../../../../../controller/pipeline/contract.ts';
import {
  buildDeployKeySecret,
  buildPipelineJob,
  formatImageName,
  hashBuildInputs,
} from '../../../../../controller/steps/build/job.ts';
import type { HostedApp } from '../../../../../crds/hosted-app.ts';
import { annotations, formatCacheRepository, formatImageRepository, labels } from '../../../../../crds/names.ts';
import { createPushToken } from '../../../../../lib/app-tokens.ts';
import { canRead } from '../../../../../lib/git/read-token.ts';
import { computeHash } from '../../../../../lib/kubernetes/index.ts';
import { deriveDeployKey, listHostKeys } from '../../../../../lib/git/deploy-keys.ts';
import { markPrivate, parseRepository } from '../../../../../lib/repository.ts';
import { app, config, first, now } from '../../../../support/operator/scenario.ts';

function withMeta(metadata: Partial<HostedApp['metadata']>): HostedApp {
  const made = app();
  return { ...made, metadata: { ...made.metadata, ...metadata } };
}

function buildJob(of: HostedApp, installation = config): ReturnType<typeof buildPipelineJob> {
  return buildPipelineJob(of, installation, {
    name: 'job',
    commit: first,
    inputs: hashBuildInputs(of),
    number: 1,
    repository: parseRepository(of.spec.source.repo, config.gitHosts),
    queuedAt: now,
    reason: 'first build',
  });
}

function getPodSpec(made: ReturnType<typeof buildPipelineJob>): V1PodSpec {
  return (made['spec'] as V1JobSpec).template.spec ?? assert.fail();
}

function readInput(made: ReturnType<typeof buildPipelineJob>): PipelineInput {
  const value = getPodSpec(made).containers[0]?.env?.find(({ name }) => name === 'MOORAGE_PIPELINE')?.value;
  return pipelineInput.parse(JSON.parse(value ?? ''));
}

const uid = '0a1b2c3d-0000-4000-8000-000000000000';

test('separates images and cache of an app from those of a later app with its name', () => {
  const later = uid.replace('0a', '0b');
  assert.equal(formatImageName(config, withMeta({ uid })), `registry.test/apps/hello.${uid}`);
  assert.notEqual(formatImageName(config, withMeta({ uid: later })), formatImageName(config, withMeta({ uid })));
  assert.equal(readInput(buildJob(withMeta({ uid }))).cache, `proxy.test:5000/cache/hello.${uid}`);
  assert.equal(readInput(buildJob(withMeta({ uid: later }))).cache, `proxy.test:5000/cache/hello.${later}`);
});

test('uses valid registry paths, and never the same one for an image and a cache', () => {
  const repository = /^[a-z0-9]+(?:[._-][a-z0-9]+|-+[a-z0-9]+)*(?:\/[a-z0-9]+(?:[._-][a-z0-9]+|-+[a-z0-9]+)*)*$/;
  for (const name of ['hello', 'cache', 'a--b', 'a-1']) {
    for (const each of [formatImageRepository({ name, uid }), formatCacheRepository({ name, uid })])
      assert.match(each, repository);
    assert.ok(formatImageName(config, withMeta({ name, uid })).startsWith('registry.test/apps/'));
  }
});

test('gives only the clone a token for the git server in the cluster, and only for its own repository', () => {
  const secret = 'secret-of-the-git-server-0123456789-abcdef';
  const host = 'git.moorage-git.svc.cluster.local';
  const local: typeof config = {
    ...config,
    gitAccess: { readSecret: secret },
    gitHosts: { allowed: [host, 'github.com'], insecure: [host] },
  };
  const tokens = (repo: string, installation = local): (string | undefined)[] => {
    const repository = parseRepository(repo, local.gitHosts);
    const identity = {
      name: 'job',
      commit: first,
      inputs: hashBuildInputs(app()),
      number: 1,
      queuedAt: now,
      reason: 'first',
    };
    const { containers } = getPodSpec(buildPipelineJob(app(), installation, { ...identity, repository }));
    return containers.map(({ env = [] }) => env.find(({ name }) => name === 'MOORAGE_GIT_TOKEN')?.value);
  };
  const [clone = '', ...others] = tokens(`http://${host}/local/hello`);
  assert.deepEqual(others, [undefined, undefined]);
  assert.ok(canRead(clone, 'local/hello', secret, now));
  assert.ok(!canRead(clone, 'local/other', secret, now));
  assert.ok(!canRead(clone, 'local/hello', secret, new Date(now.getTime() + 25 * 60 * 60_000)));
  assert.deepEqual(tokens('https://github.com/owner/hello'), [undefined, undefined, undefined]);
  assert.deepEqual(tokens(`http://${host}/local/hello`, { ...local, gitAccess: {} }), [
    undefined,
    undefined,
    undefined,
  ]);
});

test('gives a pipeline no registry account: only its builder gets a token, for its own app', () => {
  const made = buildJob(withMeta({ uid }));
  const { containers, initContainers = [], volumes = [] } = getPodSpec(made);
  assert.deepEqual(
    volumes.filter((each) => each.emptyDir === undefined),
    [],
  );
  const tokens = [...initContainers, ...containers].map(({ name, env = [] }) => [
    name,
    env.find((each) => each.name === 'MOORAGE_PUSH_TOKEN')?.value,
  ]);
  const token = createPushToken({ name: 'hello', uid }, config.registry.tokenSecret);
  assert.deepEqual(tokens, [
    ['clone', undefined],
    ['review', undefined],
    ['build', token],
  ]);
  assert.equal(readInput(made).push, `proxy.test:5000/apps/hello.${uid}`);
});

test('points builds at the registry proxy for Docker Hub images if the registry mirrors it', () => {
  const withMirror = (mirror: string, insecure = false): PipelineInput =>
    readInput(buildJob(withMeta({ uid }), { ...config, registry: { ...config.registry, mirror, insecure } }));
  assert.deepEqual(readInput(buildJob(app())).plainHosts, ['proxy.test:5000']);
  assert.equal(withMirror('registry.test').mirror, 'proxy.test:5000');
  assert.deepEqual(withMirror('registry.test', true).plainHosts, ['proxy.test:5000']);
  assert.equal(withMirror('mirror.test').mirror, 'mirror.test');
  assert.deepEqual(withMirror('mirror.test').plainHosts, ['proxy.test:5000']);
  assert.deepEqual(withMirror('mirror.test', true).plainHosts, ['proxy.test:5000', 'mirror.test']);
});

test('labels a Job with its submitter: the network, or else the caller, or else the app itself', () => {
  const submitter = (marks: Record<string, string>): string | undefined =>
    buildJob(withMeta({ labels: marks })).metadata.annotations?.[annotations.submitter];
  assert.equal(submitter({ [labels.caller]: 'key', [labels.network]: 'network' }), 'network');
  assert.equal(submitter({ [labels.caller]: 'key' }), 'key');
  assert.equal(submitter({}), 'moorage-apps/hello');
});

test("passes the git hosts, the licence policy and the app's waivers to a pipeline", () => {
  const input = readInput(buildJob(withMeta({ uid })));
  assert.deepEqual(input.gitHosts.allowed, config.gitHosts.allowed);
  assert.deepEqual(input.licenses, config.pipeline.licenses);
  const waivers = [{ rule: 'license/approval', reason: 'Agreed.' }];
  const app = withMeta({ uid });
  const waived = { ...app, spec: { ...app.spec, review: { waivers } } };
  assert.deepEqual(readInput(buildJob(waived)).waivers, waivers);
});

test("includes waivers in the build's inputs, and keeps the hash without any", () => {
  const app = withMeta({ uid });
  const waived = (reason: string): HostedApp => ({
    ...app,
    spec: { ...app.spec, review: { waivers: [{ rule: 'license/approval', reason }] } },
  });
  assert.ok(!('spec.review.waivers' in hashBuildInputs(app).each));
  const hashes = [app, waived('One.'), waived('Two.')].map((each) => hashBuildInputs(each).hash);
  assert.equal(new Set(hashes).size, 3);
});

const twoComponents: HostedApp['spec']['components'] = [
  { name: 'web', kind: 'web', path: 'web' },
  { name: 'api', kind: 'worker', path: 'api', port: 8000, env: [{ name: 'A', value: '1' }] },
];

test('an app of one process keeps the hash and the input that it had before there were components', () => {
  const one = withMeta({ uid });
  // From the version before components: another value here would rebuild every app after an upgrade.
  assert.equal(hashBuildInputs(one).hash, 'bd4785ff7c6bf704');
  const { memoryBytes, url, ...input } = readInput(buildJob(one));
  assert.deepEqual([memoryBytes, url], [4 * 1024 ** 3, 'https://hello.apps.test']);
  assert.equal(computeHash(input), 'edcb1a45cba52e24');
});

test('names fields of one process to the pipeline, and has an app built again that gets them after its components', () => {
  const volumes = [{ name: 'data', path: '/data', size: '1Gi' }];
  const run = { volumes, healthPath: '/ready' };
  assert.deepEqual(readInput(buildJob(app({ run }))).processFields, ['run.healthPath', 'run.volumes']);
  assert.equal(hashBuildInputs(app({ run })).hash, hashBuildInputs(app()).hash);
  const image = `registry.test/apps/hello.uid-1@sha256:${'a'.repeat(64)}`;
  const built = { image, commit: first, inputsHash: 'i', components: [{ name: 'web', image }] };
  const hash = (changes: object): string => hashBuildInputs(app(changes, { built })).hash;
  assert.equal(hash({}), hashBuildInputs(app()).hash);
  assert.notEqual(hash({ run }), hash({}));
});

test("includes what a component is built from in the build's inputs, and not what it runs with", () => {
  const hash = (components: HostedApp['spec']['components']): string => hashBuildInputs(app({ components })).hash;
  const change = (changes: object): string => hash(twoComponents.map((each) => ({ ...each, ...changes })));
  const before = hash(twoComponents);
  assert.notEqual(before, hashBuildInputs(app()).hash);
  for (const changes of [{ path: 'other' }, { build: { target: 'run' } }, { port: 90 }, { command: ['a'] }])
    assert.notEqual(change(changes), before, JSON.stringify(changes));
  for (const changes of [{ env: [{ name: 'A', value: '2' }] }, { resources: { cpu: '1' } }, { healthPath: '/x' }])
    assert.equal(change(changes), before, JSON.stringify(changes));
});

test('gives a pipeline the components, and the images of the last build that have a hash', () => {
  const of = app({ components: twoComponents });
  const image = `registry.test/apps/hello.uid-1@sha256:${'a'.repeat(64)}`;
  const identity = {
    ...{ name: 'job', commit: first, inputs: hashBuildInputs(of), number: 1, queuedAt: now, reason: 'first build' },
    repository: parseRepository(of.spec.source.repo, config.gitHosts),
  };
  const input = readInput(
    buildPipelineJob(of, config, {
      ...identity,
      builtImages: [
        { name: 'web', image, sourceHash: 'v1:x', port: 80 },
        { name: 'api', image },
      ],
    }),
  );
  assert.deepEqual(
    input.components?.map(({ name, port, isMain, imageOf }) => [name, port, isMain, imageOf]),
    [
      ['web', undefined, true, 'web'],
      ['api', 8000, false, 'api'],
    ],
  );
  assert.doesNotMatch(JSON.stringify(input), /"value":"1"/);
  assert.deepEqual(input.builtImages, [{ image, sourceHash: 'v1:x' }]);
  assert.equal(readInput(buildJob(of)).builtImages, undefined);
});

test('gives only the clone of a private repository its deploy key, by a Secret that goes with the Job', () => {
  const secret = 'k'.repeat(32);
  const local: typeof config = { ...config, gitAccess: { deployKeys: { secret, hostKeys: listHostKeys([]) } } };
  const repository = markPrivate(
    parseRepository('https://github.com/owner/hello', { allowed: ['github.com'], insecure: [] }),
    true,
  );
  const { privateKey } = deriveDeployKey(repository, secret);
  const identity = {
    ...{ name: 'job', commit: first, inputs: hashBuildInputs(app()), number: 1, queuedAt: now, reason: 'first build' },
    repository,
  };
  const made = buildPipelineJob(app(), local, identity);
  const variables = getPodSpec(made).containers.map(({ name, env = [] }) => [
    name,
    env.flatMap(({ valueFrom }) => valueFrom?.secretKeyRef?.name ?? []),
  ]);
  assert.deepEqual(Object.fromEntries(variables), { clone: ['job-deploy-key'], review: [], build: [] });
  const { ssh, repo, licenses } = readInput(made);
  assert.equal(ssh?.url, 'ssh://git@github.com:22/owner/hello.git');
  assert.equal(repo, 'https://github.com/owner/hello');
  assert.equal(licenses.missing, 'warn');
  assert.ok(!JSON.stringify(made).includes('PRIVATE KEY'));
  assert.equal(made.metadata.labels?.[labels.ssh], 'true');

  const job = { ...made, metadata: { ...made.metadata, uid: 'job-uid' } } as unknown as Parameters<
    typeof buildDeployKeySecret
  >[0];
  const stored = buildDeployKeySecret(job, repository, local) ?? assert.fail();
  assert.equal(stored.metadata.name, 'job-deploy-key');
  assert.equal(stored.metadata.namespace, config.buildsNamespace);
  assert.deepEqual(stored.metadata.ownerReferences, [
    { apiVersion: 'batch/v1', kind: 'Job', name: 'job', uid: 'job-uid' },
  ]);
  // A check of the format has random bytes.
  const { key = '' } = stored['stringData'] as Record<string, string>;
  assert.equal(key.slice(-100), privateKey.slice(-100));

  const open = buildPipelineJob(app(), local, { ...identity, repository: { ...repository, isPrivate: false } });
  assert.equal(buildDeployKeySecret(job, { ...repository, isPrivate: false }, local), undefined);
  assert.equal(readInput(open).ssh, undefined);
  assert.equal(readInput(open).licenses.missing, config.pipeline.licenses.missing);
  assert.equal(open.metadata.labels?.[labels.ssh], undefined);
});
