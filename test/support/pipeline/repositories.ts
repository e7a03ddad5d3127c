// Git repositories for pipeline tests: made of plain folders, served by git's own HTTP program on loopback.
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { cp, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';

const fixtures = join(import.meta.dirname, '..', '..', 'fixtures');

export interface Repositories {
  /** http://127.0.0.1:port/ */
  readonly url: string;
  readonly folder: string;
  /**
   * A repository of a fixture folder (or none) with files added or replaced; `change` may do more before the commit.
   */
  add(name: string, content: RepositoryContent): Promise<Repository>;
  stop(): Promise<void>;
}

export interface RepositoryContent {
  readonly fixture?: string;
  readonly files?: Readonly<Record<string, string>>;
  readonly change?: (folder: string, git: (...args: string[]) => string) => void | Promise<void>;
}

export interface Repository {
  readonly url: string;
  readonly commit: string;
  readonly folder: string;
}

const identity = {
  GIT_AUTHOR_NAME: 'A',
  GIT_AUTHOR_EMAIL: 'a@example.org',
  GIT_COMMITTER_NAME: 'A',
  GIT_COMMITTER_EMAIL: 'a@example.org',
  GIT_AUTHOR_DATE: '2026-01-02T03:04:05Z',
  GIT_COMMITTER_DATE: '2026-01-02T03:04:05Z',
};

/** Runs git in a folder with nobody's configuration. */
export function createGitRunner(folder: string): (...args: string[]) => string {
  const env = { PATH: process.env['PATH'] ?? '', HOME: folder, GIT_CONFIG_NOSYSTEM: '1', ...identity };
  return (...args) =>
    execFileSync('git', ['-c', 'protocol.file.allow=always', ...args], {
      cwd: folder,
      env,
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'pipe'],
    }).trim();
}

export async function serveRepositories(): Promise<Repositories> {
  const folder = await mkdtemp(join(tmpdir(), 'moorage-git-'));
  const server = createServer((request, response) => {
    answer(folder, request, response);
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('no port');
  const url = `http://127.0.0.1:${address.port}/`;
  return {
    url,
    folder,
    add: async (name, content) => ({ url: `${url}${name}`, ...(await make(join(folder, name), content)) }),
    stop: async () => {
      server.closeAllConnections();
      server.close();
      await rm(folder, { recursive: true, force: true });
    },
  };
}

async function make(folder: string, content: RepositoryContent): Promise<Omit<Repository, 'url'>> {
  await mkdir(folder, { recursive: true });
  const git = createGitRunner(folder);
  git('init', '--quiet', '--initial-branch=main');
  if (content.fixture !== undefined) await cp(join(fixtures, content.fixture), folder, { recursive: true });
  for (const [path, text] of Object.entries(content.files ?? {})) {
    await mkdir(dirname(join(folder, path)), { recursive: true });
    await writeFile(join(folder, path), text);
  }
  git('add', '--all', '--force');
  await content.change?.(folder, git);
  git('commit', '--quiet', '--allow-empty', '--message', 'Add the sample');
  return { folder, commit: git('rev-parse', 'HEAD') };
}

function fromHeaders({ headers, url }: IncomingMessage): Record<string, string> {
  // /old/ answers as servers did before protocol 2, which refuse a commit that no reference names.
  if (url?.startsWith('/old/') === true)
    return { CONTENT_TYPE: headers['content-type'] ?? '', HTTP_CONTENT_ENCODING: headers['content-encoding'] ?? '' };
  return {
    CONTENT_TYPE: headers['content-type'] ?? '',
    HTTP_CONTENT_ENCODING: headers['content-encoding'] ?? '',
    GIT_PROTOCOL: String(headers['git-protocol'] ?? ''),
  };
}

/** CGI, as far as git http-backend speaks it. /moved/ and /elsewhere/ redirect. */
function answer(folder: string, request: IncomingMessage, response: ServerResponse): void {
  const [path = '', query = ''] = (request.url ?? '').split('?');
  if (path.startsWith('/moved/')) {
    response.writeHead(301, { location: `${path.slice('/moved'.length)}?${query}` }).end();
    return;
  }
  if (path.startsWith('/elsewhere/')) {
    response.writeHead(301, { location: `http://localhost.invalid${path}?${query}` }).end();
    return;
  }
  const child = spawn('git', ['http-backend'], {
    env: {
      PATH: process.env['PATH'] ?? '',
      GIT_PROJECT_ROOT: folder,
      GIT_HTTP_EXPORT_ALL: '1',
      PATH_INFO: path.replace(/^(?:\/old)?((?:\/[^/]+?){1,2}?)(?:\.git)?\/(?=info\/|git-|objects\/|HEAD)/, '$1/.git/'),
      QUERY_STRING: query,
      REQUEST_METHOD: request.method ?? 'GET',
      ...fromHeaders(request),
      GIT_CONFIG_COUNT: '1',
      GIT_CONFIG_KEY_0: 'safe.directory',
      GIT_CONFIG_VALUE_0: '*',
    },
    stdio: ['pipe', 'pipe', 'ignore'],
  });
  request.pipe(child.stdin);
  child.stdin.on('error', () => undefined);
  // A client that hangs up would leave git blocked on its pipe.
  response.on('close', () => {
    child.stdout.destroy();
    child.kill();
  });
  let head = Buffer.alloc(0);
  const onHead = (chunk: Buffer): void => {
    head = Buffer.concat([head, chunk]);
    const end = head.indexOf('\r\n\r\n');
    if (end < 0) return;
    child.stdout.off('data', onHead);
    const headers = head
      .subarray(0, end)
      .toString('latin1')
      .split('\r\n')
      .map((line) => line.split(/: (.*)/s));
    for (const [name = '', value = ''] of headers) if (name !== 'Status') response.setHeader(name, value);
    response.statusCode = Number(headers.find(([name]) => name === 'Status')?.[1]?.slice(0, 3) ?? 200);
    response.write(head.subarray(end + 4));
    child.stdout.pipe(response);
  };
  child.stdout.on('data', onHead);
  child.stdout.on('end', () => response.end());
}
