// A git repository on loopback, served as plain files (git's dumb HTTP), with commits made on demand.
import { execFile } from 'node:child_process';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { tmpdir } from 'node:os';
import { join, normalize } from 'node:path';
import { promisify } from 'node:util';

const run = promisify(execFile);

export interface GitServer {
  /** `localhost:port`. */
  readonly host: string;
  /** Address of the one repository. */
  readonly url: string;
  /** The same content under the name of another owner. */
  readonly otherOwnerUrl: string;
  /** Requests received so far. */
  requests: () => number;
  /** Makes a commit on `branch` and returns its id. */
  commit: (message: string, branch?: string) => Promise<string>;
  /** Makes an annotated tag of the newest commit of main. */
  tag: (name: string) => Promise<void>;
  /** Points a reference, such as refs/pull/1/head, to a new commit, and returns its id. Without `exists`, removes it. */
  setReference: (name: string, exists?: boolean) => Promise<string>;
  stop: () => Promise<void>;
}

/** Starts the server with a repository `owner/hello` that has one commit on main. */
export async function startGitServer(): Promise<GitServer> {
  const folder = await mkdtemp(join(tmpdir(), 'moorage-git-'));
  const bare = join(folder, 'owner', 'hello');
  const environment = {
    PATH: process.env['PATH'],
    HOME: folder,
    GIT_CONFIG_NOSYSTEM: '1',
    GIT_AUTHOR_NAME: 'a',
    GIT_AUTHOR_EMAIL: 'a@localhost',
    GIT_COMMITTER_NAME: 'a',
    GIT_COMMITTER_EMAIL: 'a@localhost',
  };
  const git = async (...args: string[]): Promise<string> =>
    (await run('git', ['-C', bare, ...args], { env: environment })).stdout.trim();
  await run('git', ['init', '--quiet', '--bare', '--initial-branch=main', bare], { env: environment });
  const emptyTree = await git('hash-object', '-t', 'tree', '-w', '/dev/null');
  let [received, changes] = [0, 0];
  const server = createServer((request, response) => {
    received += 1;
    void answer(folder, request, response);
  });
  await new Promise<void>((resolve) => server.listen(0, 'localhost', resolve));
  const address = server.address();
  const host = `localhost:${typeof address === 'object' && address !== null ? address.port : 0}`;
  const commit = async (message: string, branch = 'main'): Promise<string> => {
    const parent = await git('rev-parse', '--verify', '--quiet', `refs/heads/${branch}`).catch(() => undefined);
    const id = await git('commit-tree', emptyTree, ...(parent === undefined ? [] : ['-p', parent]), '-m', message);
    await git('update-ref', `refs/heads/${branch}`, id);
    await git('update-server-info');
    return id;
  };
  await commit('first');
  return {
    host,
    url: `http://${host}/owner/hello`,
    otherOwnerUrl: `http://${host}/stranger/hello`,
    requests: () => received,
    commit,
    async tag(name) {
      await git('tag', '--annotate', '--message', name, name, 'main');
      await git('update-server-info');
    },
    async setReference(name, exists = true) {
      changes += 1;
      const id = await git('commit-tree', emptyTree, '-m', `${name} ${changes}`);
      await (exists ? git('update-ref', name, id) : git('update-ref', '-d', name));
      await git('update-server-info');
      return id;
    },
    async stop() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
      await rm(folder, { recursive: true, force: true });
    },
  };
}

async function answer(folder: string, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const path = normalize(new URL(request.url ?? '/', 'http://localhost').pathname).replace(/^\/stranger\//, '/owner/');
  try {
    response.end(await readFile(join(folder, path)));
  } catch {
    response.writeHead(404).end();
  }
}
