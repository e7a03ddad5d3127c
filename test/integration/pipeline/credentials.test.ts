// A hostile registry tries to have the builder fetch other apps' images for it, with what the build holds for pushing.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import { afterAll, beforeAll, test } from 'vitest';
import { z } from 'zod';
import { buildResult } from '../../../controller/pipeline/contract.ts';
import { startLab, type Lab } from '../../support/pipeline/lab.ts';
import { findFreePort } from '../../support/free-port.ts';

let lab: Lab;
beforeAll(async () => {
  lab = await startLab();
});
afterAll(() => lab.stop());

/** Answers for every image by a redirect to `target`, or with the challenge that asks for the password. */
async function hostileRegistry(
  answer: (path: string) => { status: number; headers: Record<string, string> },
): Promise<{ host: string; seen: string[]; server: Server }> {
  const seen: string[] = [];
  const server = createServer((request, response) => {
    seen.push(`${request.method} ${request.url} ${request.headers.authorization ?? '-'}`);
    const { status, headers } = answer(request.url ?? '');
    response.writeHead(status, headers).end();
  });
  const port = await findFreePort();
  server.listen(port, '127.0.0.1');
  await once(server, 'listening');
  return { host: `127.0.0.1:${port}`, seen, server };
}

test('a registry that redirects to ours gets no image of another app, whatever digest it knows', async () => {
  const victim = await lab.through('victim', {
    fixture: 'static',
    files: { 'index.html': '<p>only for the victim</p>\n' },
  });
  const { image } = buildResult.parse(victim.message);
  const [name = '', digest = ''] = image.slice(lab.registry.host.length + 1).split('@');
  const hostile = await hostileRegistry((path) =>
    path === '/v2/'
      ? { status: 200, headers: {} }
      : {
          status: 307,
          headers: {
            location: `http://${lab.registry.proxy.host}/v2/${name}/${path.includes('/blobs/') ? `blobs/${path.split('/').at(-1)}` : `manifests/${digest}`}`,
          },
        },
  );
  try {
    const ended = await lab.through(
      'thief',
      {
        fixture: 'static',
        files: {
          Dockerfile: `FROM ${hostile.host}/some/image@${digest}\nRUN grep -r "only for the victim" /srv /usr/share/nginx /app; true\n`,
        },
      },
      { plainHosts: [lab.registry.proxy.host, hostile.host] },
    );
    assert.ok(hostile.seen.length > 0, 'the builder asked the hostile registry');
    assert.notEqual(ended.code, 0, ended.log.slice(-2000));
    assert.doesNotMatch(ended.log, /only for the victim<\/p>/);
    assert.match(ended.log, /403 Forbidden|denied|DENIED/);
    assert.ok(
      hostile.seen.every((line) => line.endsWith(' -')),
      'nothing of ours is shown to a foreign registry',
    );
  } finally {
    hostile.server.close();
    hostile.server.closeAllConnections();
  }
});

test('sends no credentials to a registry that asks for a password', async () => {
  const hostile = await hostileRegistry(() => ({ status: 401, headers: { 'www-authenticate': 'Basic realm="x"' } }));
  try {
    const ended = await lab.through(
      'asked',
      { fixture: 'static', files: { Dockerfile: `FROM ${hostile.host}/some/image\n` } },
      { plainHosts: [lab.registry.proxy.host, hostile.host] },
    );
    assert.equal(ended.code, 42, ended.log.slice(-2000));
    assert.ok(hostile.seen.length > 0);
    assert.ok(hostile.seen.every((line) => line.endsWith(' -')));
  } finally {
    hostile.server.close();
    hostile.server.closeAllConnections();
  }
});

test('does not run git next to the builder, and reports it to the author', async () => {
  for (const [index, source] of [
    'https://github.com/octo/chat.git',
    'git@github.com:octo/chat.git',
    'https://github.com/octo/chat.git#main:folder',
  ].entries()) {
    const ended = await lab.through(`git-${index}`, {
      fixture: 'static',
      files: { Dockerfile: `FROM debian:bookworm-slim\nADD ${source} /src\nCMD ["/src/server"]\n` },
    });
    assert.equal(ended.code, 42, ended.log.slice(-2000));
    const [finding] = z
      .object({ findings: z.array(z.object({ rule: z.string(), line: z.int().optional() })) })
      .parse(ended.message).findings;
    assert.deepEqual(finding, { rule: 'build/git-source', line: 2 });
  }
});
