// Node projects whose lock file does not fit, and those of Bun, are built for real.
import assert from 'node:assert/strict';
import { afterAll, beforeAll, test } from 'vitest';
import { buildResult } from '../../../controller/pipeline/contract.ts';
import { answerOf } from '../../support/pipeline/images.ts';
import { startLab, type Lab } from '../../support/pipeline/lab.ts';

let lab: Lab;
beforeAll(async () => {
  lab = await startLab();
});
afterAll(() => lab.stop());

const manifest = {
  name: 'sample',
  version: '1.0.0',
  license: 'MIT',
  scripts: { start: 'node server.js' },
  dependencies: { express: '5.1.0', 'left-pad': '1.3.0' },
};

test('warns about a lock file that does not match, and builds the app without it', async () => {
  const ended = await lab.through('unlocked', {
    fixture: 'express',
    files: { 'package.json': JSON.stringify(manifest) },
  });
  assert.equal(ended.code, 0, ended.log.slice(-3000));
  const { image, port, findings } = buildResult.parse(ended.message);
  assert.deepEqual(
    findings.map(({ rule, severity, file }) => [rule, severity, file]),
    [['build/lockfile', 'warning', 'package-lock.json']],
  );
  assert.match(ended.log, /^warning: build\/lockfile at package-lock\.json: /m);
  assert.match(await answerOf(lab, image, port ?? 8080, '/'), /hello from Express/);
});

test('installs, builds and starts a Bun app with Bun', async () => {
  const ended = await lab.through('bun', {
    fixture: 'static',
    files: {
      'index.html': '',
      'package.json': JSON.stringify({
        name: 'bun-sample',
        license: 'MIT',
        scripts: { build: 'bun build server.ts --target bun --outdir out', start: 'bun out/server.js' },
      }),
      'bun.lock':
        '{\n  "lockfileVersion": 1,\n  "workspaces": { "": { "name": "bun-sample" } },\n  "packages": {},\n}\n',
      'server.ts':
        'Bun.serve({ port: Number(process.env.PORT), fetch: (): Response => new Response(`hello from Bun ${Bun.version}`) });\n',
    },
  });
  assert.equal(ended.code, 0, ended.log.slice(-3000));
  const { image, port } = buildResult.parse(ended.message);
  assert.match(await answerOf(lab, image, port ?? 8080, '/'), /hello from Bun 1\./);
});

test("an author's step cannot print one of our warnings", async () => {
  const ended = await lab.through('forged', {
    fixture: 'static',
    files: { Dockerfile: 'FROM debian:bookworm-slim\nRUN echo "moorage-warning: lockfile x"\nCMD ["./server"]\n' },
  });
  assert.equal(ended.code, 0, ended.log.slice(-3000));
  assert.match(ended.log, /^#\d+ [\d.]+ moorage-warning: lockfile x$/m);
  assert.deepEqual(buildResult.parse(ended.message).findings, []);
});
