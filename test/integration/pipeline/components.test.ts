// An app of several components goes through the pipeline as one: an image for each, and a push that changes one builds one.
import assert from 'node:assert/strict';
import { afterAll, beforeAll, test } from 'vitest';
import { buildResult, type BuildResult, type PipelineInput } from '../../../controller/pipeline/contract.ts';
import { formatCacheRepository, formatImageRepository } from '../../../crds/names.ts';
import { answerOf } from '../../support/pipeline/images.ts';
import { labUid, startLab, type Lab } from '../../support/pipeline/lab.ts';

let lab: Lab;
beforeAll(async () => {
  lab = await startLab();
});
afterAll(() => lab.stop());

const app = { name: 'shop', uid: labUid };
const manifest = `components:
  - {name: web, path: web}
  - {name: api, path: api, route: {path: /api}, build: {args: [{name: GREETING, value: hello}]}}
  - {name: jobs, kind: worker, image: api, command: [./work]}
`;
const apiFile =
  'FROM debian:bookworm-slim\nARG GREETING\nRUN echo "$GREETING" > /greeting\nCOPY . .\nEXPOSE 8080\nCMD ["./serve"]\n';

interface Push {
  readonly result: BuildResult;
  readonly log: string;
}

/** Pushes a version of the repository and takes it through the pipeline, after the build before. */
async function push(number: number, page: string, api: string, before?: BuildResult): Promise<Push> {
  const content = {
    fixture: 'static',
    files: {
      'moorage.yaml': manifest,
      'web/index.html': `<p>${page}</p>\n`,
      'api/Dockerfile': apiFile,
      'api/serve': `#!/bin/sh\necho ${api}\n`,
    },
  };
  const builtImages = before?.components?.flatMap(({ image, sourceHash }) =>
    sourceHash === undefined ? [] : [{ image, sourceHash }],
  );
  const input: Partial<PipelineInput> = {
    app: app.name,
    tag: `build-${number}`,
    cache: `${lab.registry.proxy.host}/${formatCacheRepository(app)}`,
    cacheBytes: 2_000_000_000,
    memoryBytes: 4 * 1024 ** 3,
    ...(builtImages === undefined ? {} : { builtImages }),
  };
  const pod = await lab.pod(await lab.repositories.add(`shop-${number}`, content), input, 'warm');
  try {
    const ended = await pod.upTo('build');
    assert.equal(ended.code, 0, ended.log.slice(-3000));
    return { result: buildResult.parse(ended.message), log: ended.log };
  } finally {
    await pod.remove();
  }
}

async function listTags(repository: string): Promise<string[]> {
  const answer = await fetch(`http://${lab.registry.host}/v2/${repository}/tags/list`, {
    headers: { authorization: lab.registry.authorization },
  });
  const { tags } = (await answer.json()) as { tags: string[] };
  return tags.sort();
}

const toDigests = ({ components = [] }: BuildResult): Record<string, string | undefined> =>
  Object.fromEntries(components.map(({ name, image }) => [name, image.split('@')[1]]));

test('builds an image for each component, and after a push that changes one of them, only that one', async () => {
  const first = await push(1, 'one', 'one');
  assert.deepEqual(
    first.result.components?.map(({ name, port }) => [name, port]),
    [
      ['web', 8081],
      ['api', 8080],
      ['jobs', undefined],
    ],
  );
  const [web, api] = [toDigests(first.result)['web'], toDigests(first.result)['api']];
  assert.equal(toDigests(first.result)['jobs'], api);
  assert.notEqual(web, api);
  assert.ok(first.result.image.endsWith(`@${web}`));
  assert.equal(first.result.port, 8081);
  assert.match(first.log, /^api \| #\d+ \[2\/3\] RUN echo "hello" > \/greeting$/m);
  assert.match(first.log, /^web \| #\d+ /m);
  assert.doesNotMatch(first.log, /^\w+ \| $/m);
  assert.match(await answerOf(lab, first.result.image, 8081, '/'), /<p>one<\/p>/);

  const second = await push(2, 'one', 'two', first.result);
  const { components = [] } = second.result;
  assert.equal(toDigests(second.result)['web'], web);
  assert.notEqual(toDigests(second.result)['api'], api);
  assert.deepEqual(
    components.map(({ port }) => port),
    [8081, 8080, undefined],
  );
  assert.match(second.log, /^web \| unchanged since the build before/m);
  assert.doesNotMatch(second.log, /^web \| #\d+ /m);
  assert.match(second.log, /^api \| #\d+ /m);
  assert.deepEqual(await listTags(formatImageRepository(app)), ['build-1-api', 'build-1-web', 'build-2-api']);
  assert.deepEqual(await listTags(formatCacheRepository(app)), ['steps-api', 'steps-web']);

  // A rebuild offers no images, and an image that the registry has lost is built again.
  const lost = {
    ...second.result,
    components: components.map((each) => ({
      ...each,
      image: each.image.replace(/[0-9a-f]{64}$/, '0'.repeat(64)),
    })),
  };
  const third = await push(3, 'one', 'two', lost);
  assert.deepEqual(toDigests(third.result), toDigests(second.result));
  assert.doesNotMatch(third.log, /unchanged since/);
  assert.deepEqual(
    (await listTags(formatImageRepository(app))).filter((tag) => tag.startsWith('build-3')),
    ['build-3-api', 'build-3-web'],
  );
});

test('names the component whose build fails, and stops the others', async () => {
  const ended = await lab.through('broken', {
    fixture: 'static',
    files: {
      'moorage.yaml': 'components:\n  - {name: web, path: web}\n  - {name: api, path: api, kind: worker}\n',
      'web/index.html': '<p>x</p>\n',
      'api/Dockerfile': 'FROM debian:bookworm-slim\nRUN not-a-program\nCMD ["./serve"]\n',
    },
  });
  assert.equal(ended.code, 42, ended.log.slice(-2000));
  assert.ok('rejected' in ended.message);
  const [first] = ended.message.findings;
  assert.deepEqual([first?.rule, first?.file, first?.line], ['build/failed', 'api/Dockerfile', 2]);
  assert.match(first?.message ?? '', /^Component api: .*not-a-program/);
});
