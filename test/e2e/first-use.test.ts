// An app whose base image the node has never made: it waits for it, says so, and goes live without a second submission.
import assert from 'node:assert/strict';
import { afterAll, test } from 'vitest';
import { askRegistry, findDigest } from '../../localnode/node/registry/registry.ts';
import { appUrl, deleteApps, get, readApp, runWithFiles, submit, waitFor } from '../support/cluster.ts';

const name = 'e2e-first-use';
afterAll(() => deleteApps(name));

const repository = 'oven/bun';
const dockerfile = `FROM ${repository}:1
WORKDIR /app
COPY server.ts .
USER 1000
CMD ["bun", "server.ts"]
`;
const server = `Bun.serve({ port: process.env.PORT, fetch: () => new Response('hello from Bun ' + Bun.version) });
`;

test('an app waits for the image that it is based on, and then goes live', async () => {
  const digest = await findDigest(repository, '1');
  if (digest !== undefined) await askRegistry(`/v2/${repository}/manifests/${digest}`, 'DELETE');
  assert.equal(await findDigest(repository, '1'), undefined);

  await runWithFiles(name, { Dockerfile: dockerfile, 'server.ts': server }, async (folder) => {
    const submitted = submit(folder);
    const waiting = await waitFor('the app to need the image', async () => {
      const { status } = await readApp(name).catch(() => ({ status: undefined }));
      return status?.neededImages === undefined ? undefined : status;
    });
    assert.deepEqual(
      waiting.neededImages?.map(({ image }) => image),
      [`${repository}:1`],
    );
    assert.equal(waiting.phase, 'Building');
    const { exitCode, all } = await submitted;
    assert.equal(exitCode, 0, all);
    assert.match(
      all,
      /Waiting for the image oven\/bun:1, which this installation makes on first use: about \d+ minutes?/,
    );
  });

  assert.match((await get(appUrl(name))).body, /^hello from Bun 1\./);
  assert.notEqual(await findDigest(repository, '1'), undefined);
  const { status } = await readApp(name);
  assert.equal(status?.neededImages, undefined);
  assert.deepEqual(
    status?.history?.map(({ number, result }) => [number, result]),
    [[1, 'Succeeded']],
  );
});
