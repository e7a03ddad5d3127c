// Repositories of five kinds go from submit to live.
import assert from 'node:assert/strict';
import { afterAll, test } from 'vitest';
import { appUrl, deleteApps, waitFor, get, readApp, submit, runWithCopy } from '../support/cluster.ts';

interface Kind {
  readonly fixture: string;
  readonly strategy: string;
  readonly answers: RegExp;
}

const kinds: readonly Kind[] = [
  { fixture: 'dockerfile-app', strategy: 'dockerfile', answers: /Hello from a Dockerfile/ },
  { fixture: 'fastapi', strategy: 'python', answers: /hello from FastAPI/ },
  { fixture: 'express', strategy: 'node', answers: /hello from Express/ },
  { fixture: 'vite', strategy: 'node', answers: /<script type="module"[^>]+src="\/assets\// },
  { fixture: 'static', strategy: 'static', answers: /hello from static files/ },
];

const nameOf = (kind: Kind): string => `e2e-${kind.fixture}`;
afterAll(() => deleteApps(...kinds.map(nameOf)));

for (const kind of kinds) {
  test.concurrent(`${kind.fixture} goes from submit to live [spec service.pipeline status.live]`, async (t) => {
    const name = nameOf(kind);
    const started = performance.now();
    const ended = await runWithCopy(kind.fixture, name, (folder) => submit(folder));
    assert.equal(ended.exitCode, 0, ended.all);
    assert.ok(ended.all.includes(appUrl(name).origin), ended.all);
    const answer = await get(appUrl(name));
    assert.equal(answer.status, 200);
    assert.match(answer.body, kind.answers);
    const app = await waitFor('Ready', async () => {
      const read = await readApp(name);
      return read.status?.phase === 'Live' ? read : undefined;
    });
    assert.equal(app.status?.plan?.strategy, kind.strategy);
    assert.notEqual(app.status.plan.reason, '');
    await t.annotate(`live after ${((performance.now() - started) / 1000).toFixed(1)} s: ${app.status.plan.reason}`);
  });
}
