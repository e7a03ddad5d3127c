// Images of a kind cluster: what they are made of is there, at the path at which it is imported.
import assert from 'node:assert/strict';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { test, vi } from 'vitest';
import { buildImage, networkSources } from '../../../../cli/kind/images.ts';
import { paths } from '../../../../localnode/paths.ts';

test("the sources of the node's network exist, and keep their paths in the image", () => {
  for (const [to, from] of Object.entries(networkSources)) {
    assert.ok(existsSync(join(paths.root, from)), from);
    if (to !== 'Dockerfile') assert.equal(to, from);
  }
});

/** Does what `body` does with a `docker` of this script on the PATH. */
async function withDocker(script: string, body: (folder: string) => Promise<void>): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'moorage-docker-'));
  writeFileSync(join(folder, 'docker'), `#!/bin/sh\n${script}`, { mode: 0o755 });
  vi.stubEnv('PATH', [folder, process.env['PATH'] ?? ''].join(delimiter));
  try {
    await body(folder);
  } finally {
    vi.unstubAllEnvs();
    rmSync(folder, { recursive: true });
  }
}

/** Prints as the engine does, which keeps all but the id to itself with `--quiet`. */
const engine = `
[ "$1" = tag ] && exit 0
id=/dev/stdout
for each; do case $each in --quiet) quiet=1 ;; --iidfile=*) id=\${each#--iidfile=} ;; esac; done
[ -n "$quiet" ] || printf '#5 [2/2] RUN apt-get install speech\\n#5 0.9 Reading package lists...\\n' >&2
printf sha256:0123456789abcdef0123 > "$id"`;

test('a build reports its instructions, keeps a log, and names the image after its content', async () => {
  await withDocker(engine, async (folder) => {
    const said: string[] = [];
    const image = await buildImage('speech', ['.'], (text) => said.push(text), folder);
    assert.equal(image, 'moorage-kind/speech:0123456789abcdef');
    assert.deepEqual(said, ['[2/2] RUN apt-get install speech']);
    assert.match(readFileSync(join(folder, 'image-speech.log'), 'utf8'), /Reading package lists/);
  });
});
