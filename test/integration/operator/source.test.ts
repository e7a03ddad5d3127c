// Asking real git servers on loopback: what a revision resolves to, and every way in which it cannot be found out.
import assert from 'node:assert/strict';
import { createServer, type RequestListener } from 'node:http';
import { afterAll, beforeAll, test } from 'vitest';
import { rejectRepository, resolveRevision, type RevisionResult } from '../../../controller/steps/source/source.ts';
import { readRepository, RepositoryError } from '../../../lib/repository.ts';
import { startGitServer, type GitServer } from '../../support/operator/git-server.ts';

let git: GitServer;
let [main, feature] = ['', ''];
beforeAll(async () => {
  git = await startGitServer();
  main = await git.commit('on main');
  await git.tag('v1');
  feature = await git.commit('on a branch', 'feature/one');
});
afterAll(() => git.stop());

function ask(revision?: string, repo = git.url, host = git.host): Promise<RevisionResult> {
  const repository = readRepository(repo, { allowed: [host], insecure: [host] });
  return repository instanceof RepositoryError
    ? Promise.resolve(rejectRepository(repository))
    : resolveRevision({ repository, revision });
}

function reason(answer: RevisionResult): string {
  return answer.ok ? answer.commit : `${answer.final ? 'final' : 'again'} ${answer.reason}`;
}

async function withServer(listener: RequestListener, body: (host: string) => Promise<void>): Promise<void> {
  const server = createServer(listener);
  await new Promise<void>((resolve) => server.listen(0, 'localhost', resolve));
  const address = server.address();
  try {
    await body(`localhost:${typeof address === 'object' && address !== null ? address.port : 0}`);
  } finally {
    server.closeAllConnections();
    server.close();
  }
}

test('resolves the default branch, a branch, a tag and a commit id', async () => {
  assert.equal(reason(await ask()), main);
  assert.equal(reason(await ask('main')), main);
  assert.equal(reason(await ask('feature/one')), feature);
  assert.equal(reason(await ask('refs/heads/feature/one')), feature);
  assert.equal(reason(await ask('v1')), main, 'an annotated tag stands for its commit');
  assert.equal(reason(await ask('f'.repeat(40))), 'f'.repeat(40));
});

test('attack: does not resolve the commit of a pull request, even if set as the revision', async () => {
  for (const revision of ['refs/pull/5/head', 'refs/merge-requests/5/head', 'refs/changes/01/1/1', 'refs/heads']) {
    const answer = await ask(revision);
    assert.equal(reason(answer), 'final RevisionNotFound');
    assert.ok(!answer.ok && answer.message.includes('neither a branch nor a tag'), answer.ok ? '' : answer.message);
  }
});

test('reports a missing revision', async () => {
  const answer = await ask('nowhere');
  assert.equal(reason(answer), 'final RevisionNotFound');
  assert.ok(!answer.ok && answer.message.includes('nowhere') && answer.fix !== '');
});

test('does not mistake a branch for one with the same ending', async () => {
  assert.equal(reason(await ask('one')), 'final RevisionNotFound');
});

test('reports a missing repository', async () => {
  assert.equal(reason(await ask(undefined, git.url.replace('hello', 'nothing'))), 'final RepositoryNotFound');
});

test('treats a repository that requires a password as missing, and never prompts for one', async () => {
  await withServer(
    (_request, response) => {
      response.writeHead(401, { 'www-authenticate': 'Basic realm="x"' }).end();
    },
    async (host) => {
      assert.equal(reason(await ask(undefined, `http://${host}/owner/hello`, host)), 'final RepositoryNotFound');
    },
  );
});

test('does not follow a redirect to another host', async () => {
  const before = git.requests();
  await withServer(
    (request, response) => {
      response.writeHead(301, { location: `${git.url}${request.url?.replace('/owner/hello', '') ?? ''}` }).end();
    },
    async (host) => {
      assert.equal(reason(await ask(undefined, `http://${host}/owner/hello`, host)), 'final RepositoryMoved');
    },
  );
  assert.equal(git.requests(), before);
});

test('retries a server that is down or broken', async () => {
  assert.equal(
    reason(await ask(undefined, 'http://localhost:9/owner/hello', 'localhost:9')),
    'again RepositoryUnreachable',
  );
  await withServer(
    (_request, response) => {
      response.writeHead(503).end();
    },
    async (host) => {
      assert.equal(reason(await ask(undefined, `http://${host}/owner/hello`, host)), 'again RepositoryUnreachable');
    },
  );
});

test('sends no request to a host that is not allowed', async () => {
  const before = git.requests();
  assert.equal(reason(await ask(undefined, git.url, 'elsewhere.test')), 'final RepositoryRefused');
  assert.equal(git.requests(), before);
});
