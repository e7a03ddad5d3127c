// What a pipeline Job is given: names in the registry that no later app of the same name shares, and whose turn it is.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import { cacheName, imageName, pipelineJob } from '../../../../../controller/steps/build/job.ts';
import { buildInputs } from '../../../../../controller/steps/build/inputs.ts';
import type { HostedApp } from '../../../../../crds/hosted-app.ts';
import { annotations, labels } from '../../../../../crds/names.ts';
import { parseRepository } from '../../../../../lib/repository.ts';
import { app, config, first, now } from '../../../../support/operator/scenario.ts';

function withMeta(metadata: Partial<HostedApp['metadata']>): HostedApp {
  const made = app();
  return { ...made, metadata: { ...made.metadata, ...metadata } };
}

function jobOf(of: HostedApp): ReturnType<typeof pipelineJob> {
  return pipelineJob(of, config, {
    name: 'job',
    commit: first,
    inputs: buildInputs(of),
    number: 1,
    repository: parseRepository(of.spec.source.repo, config.gitHosts),
    queuedAt: now,
    reason: 'first build',
  });
}

test('the cache of an app is not that of a later app of its name', () => {
  const uid = '0a1b2c3d-0000-4000-8000-000000000000';
  const name = cacheName(config, withMeta({ uid }));
  assert.equal(name, `registry.test/cache/hello.${uid}`);
  assert.notEqual(cacheName(config, withMeta({ uid: uid.replace('0a', '0b') })), name);
  assert.ok(JSON.stringify(jobOf(withMeta({ uid }))).includes(name));
});

test('names in the registry are paths of the registry, and an image is never a cache', () => {
  const repository = /^[a-z0-9]+(?:[._-][a-z0-9]+|-+[a-z0-9]+)*(?:\/[a-z0-9]+(?:[._-][a-z0-9]+|-+[a-z0-9]+)*)*$/;
  for (const name of ['hello', 'cache', 'a--b', 'a-1']) {
    const of = withMeta({ name, uid: '0a1b2c3d-0000-4000-8000-000000000000' });
    for (const each of [imageName(config, name), cacheName(config, of)])
      assert.match(each.replace('registry.test/', ''), repository);
    assert.ok(imageName(config, name).startsWith('registry.test/apps/'));
  }
});

test('a Job says who submitted: the network, else the caller, else the app itself', () => {
  const submitter = (marks: Record<string, string>): string | undefined =>
    jobOf(withMeta({ labels: marks })).metadata.annotations?.[annotations.submitter];
  assert.equal(submitter({ [labels.caller]: 'key', [labels.network]: 'network' }), 'network');
  assert.equal(submitter({ [labels.caller]: 'key' }), 'key');
  assert.equal(submitter({}), 'moorage-apps/hello');
});
