// Serves git over smart HTTP on two ports. On the gateway's port, anyone can read and the password holder can push; the
// first push creates the repository. The build port is read-only, and each repository requires a token.
import { execFile, spawn } from 'node:child_process';
import { createHash, timingSafeEqual } from 'node:crypto';
import { access, mkdir, readFile, rename, rm } from 'node:fs/promises';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { canRead } from '../../lib/git/read-token.ts';

const repositories = process.env['REPOSITORIES'] ?? '/repositories';
const passwordFile = process.env['PASSWORD_FILE'] ?? '/secret/password';
const readSecretFile = process.env['READ_SECRET_FILE'] ?? '/secret/readSecret';
const port = Number(process.env['PORT'] ?? '8080');
const buildsPort = Number(process.env['BUILDS_PORT'] ?? '8081');

const maximumPushBytes = 512 * 1024 * 1024;
const maximumFetchRequestBytes = 16 * 1024 * 1024;
const requestMs = 10 * 60_000;
const atOnce = 16;
/** Requests that can wait for a slot. git does not retry after a 503, so a burst of builds must not get one. */
const maximumWaiting = 512;
/** Maximum size of a response that is buffered while its request is still arriving. */
const earlyBytes = 1024 * 1024;

let running = 0;
const waiting: (() => void)[] = [];

interface Target {
  owner: string;
  name: string;
  action: string;
  push: boolean;
  query: string;
}

const pathPattern =
  /^\/([A-Za-z0-9][A-Za-z0-9_-]{0,62})\/([A-Za-z0-9][A-Za-z0-9._-]{0,98}?)(?:\.git)?\/(info\/refs|git-upload-pack|git-receive-pack)$/;

/** Returns the requested service; undefined if method and action do not match. */
function findService(method: string, action: string, query: string): string | undefined {
  if (action === 'info/refs')
    return method === 'GET' ? (new URLSearchParams(query).get('service') ?? undefined) : undefined;
  return method === 'POST' ? action : undefined;
}

const services: readonly (string | undefined)[] = ['git-upload-pack', 'git-receive-pack'];

/** Parses `/<owner>/<name>.git/<action>` with plain names; undefined for other paths. */
function parseTarget(method: string, url: string): Target | undefined {
  const query = url.split('?')[1] ?? '';
  const [, owner = '', name = '..', action = ''] = pathPattern.exec(url.split('?')[0] ?? '') ?? [];
  const service = findService(method, action, query);
  if (name.includes('..') || !services.includes(service)) return undefined;
  return { owner, name, action, push: service === 'git-receive-pack', query: `service=${String(service)}` };
}

const digest = (text: string): Buffer => createHash('sha256').update(text).digest();

/** Reads the password of HTTP Basic with any user name; empty if there is none. */
function readPassword(request: IncomingMessage): string {
  const [scheme, credentials = ''] = (request.headers.authorization ?? '').split(' ', 2);
  if (scheme?.toLowerCase() !== 'basic') return '';
  return Buffer.from(credentials, 'base64')
    .toString('utf8')
    .replace(/^[^:]*:/, '');
}

async function canPush(request: IncomingMessage): Promise<boolean> {
  const expected = (await readFile(passwordFile, 'utf8')).trim();
  return expected !== '' && timingSafeEqual(digest(readPassword(request)), digest(expected));
}

/** Returns whether a build or the operator may read this repository. */
async function canFetch(request: IncomingMessage, { owner, name }: Target): Promise<boolean> {
  const secret = (await readFile(readSecretFile, 'utf8')).trim();
  return secret.length >= 32 && canRead(readPassword(request), `${owner}/${name}`, secret, new Date());
}

function refuse(response: ServerResponse, status: number, message: string, headers: Record<string, string> = {}): void {
  response.writeHead(status, { 'content-type': 'text/plain; charset=utf-8', ...headers });
  response.end(`${message}\n`);
}

async function isRepository(folder: string): Promise<boolean> {
  return await access(join(folder, 'HEAD')).then(
    () => true,
    () => false,
  );
}

async function createRepository(folder: string): Promise<void> {
  const draft = `${folder}.${process.pid}.${Date.now()}.draft`;
  const git = promisify(execFile);
  await mkdir(draft, { recursive: true });
  await git('git', ['init', '--quiet', '--bare', '--initial-branch=main', draft]);
  await git('git', ['-C', draft, 'config', 'http.receivepack', 'true']);
  await git('git', ['-C', draft, 'config', 'receive.fsckObjects', 'true']);
  await git('git', ['-C', draft, 'config', 'receive.maxInputSize', String(maximumPushBytes)]);
  await git('git', ['-C', draft, 'config', 'uploadpack.allowAnySHA1InWant', 'true']);
  // Another first push may have come in between; its repository stays.
  await rename(draft, folder).catch(() => rm(draft, { recursive: true, force: true }));
}

function buildGitEnvironment(request: IncomingMessage, target: Target, length: string): Record<string, string> {
  const protocol = request.headers['git-protocol'];
  return {
    PATH: process.env['PATH'] ?? '/usr/bin:/bin',
    HOME: process.env['HOME'] ?? '/tmp',
    GIT_PROJECT_ROOT: repositories,
    GIT_HTTP_EXPORT_ALL: '1',
    // The volume may have a different owner than this process.
    GIT_CONFIG_COUNT: '1',
    GIT_CONFIG_KEY_0: 'safe.directory',
    GIT_CONFIG_VALUE_0: '*',
    PATH_INFO: `/${target.owner}/${target.name}.git/${target.action}`,
    REQUEST_METHOD: request.method ?? 'GET',
    QUERY_STRING: target.query,
    CONTENT_TYPE: request.headers['content-type'] ?? '',
    ...(length === '' ? {} : { CONTENT_LENGTH: length }),
    ...(request.headers['content-encoding'] === undefined
      ? {}
      : { HTTP_CONTENT_ENCODING: request.headers['content-encoding'] }),
    ...(typeof protocol === 'string' ? { GIT_PROTOCOL: protocol } : {}),
    ...(target.push ? { REMOTE_USER: 'moorage' } : {}),
  };
}

/** Parses the header block that a CGI program writes before its body. */
function parseHead(text: string): { status: number; headers: Record<string, string> } {
  const headers: Record<string, string> = {};
  let status = 200;
  for (const line of text.split(/\r?\n/)) {
    const colon = line.indexOf(':');
    if (colon < 1) continue;
    const name = line.slice(0, colon).toLowerCase();
    const value = line.slice(colon + 1).trim();
    if (name === 'status') status = Number.parseInt(value, 10);
    else headers[name] = value;
  }
  return { status, headers };
}

/** Passes the request to `git http-backend` and returns its response. */
function serve(request: IncomingMessage, response: ServerResponse, target: Target): Promise<void> {
  return new Promise((done) => {
    const limit = target.push ? maximumPushBytes : maximumFetchRequestBytes;
    const backend = spawn('git', ['http-backend'], {
      env: buildGitEnvironment(request, target, request.headers['content-length'] ?? ''),
      stdio: ['pipe', 'pipe', 'inherit'],
    });
    const timer = setTimeout(() => backend.kill('SIGKILL'), requestMs);
    let received = 0;
    let head = Buffer.alloc(0);
    let started = false;
    /**
     * Starts the response once the whole request has arrived. Go's HTTP/1 servers, and therefore gateways written in
     * Go, discard 256 KiB of a body that is still arriving when its response starts: git would find the pack damaged.
     */
    const begin = (): void => {
      const headEnd = head.indexOf('\r\n\r\n');
      if (started || headEnd < 0) return;
      started = true;
      const { status, headers } = parseHead(head.subarray(0, headEnd).toString('latin1'));
      response.writeHead(status, headers);
      response.write(head.subarray(headEnd + 4));
      backend.stdout.resume();
    };
    request.on('data', (chunk: Buffer) => {
      received += chunk.length;
      if (received > limit) backend.kill('SIGKILL');
    });
    request.on('end', begin);
    // A backend that exits early closes its input; its response contains the reason.
    backend.stdin.on('error', () => undefined);
    request.pipe(backend.stdin);
    backend.stdout.on('data', (chunk: Buffer) => {
      if (started) {
        if (!response.write(chunk)) backend.stdout.pause();
        return;
      }
      head = Buffer.concat([head, chunk]);
      if (request.complete) begin();
      else if (head.length > earlyBytes) backend.stdout.pause();
    });
    response.on('drain', () => backend.stdout.resume());
    response.on('close', () => backend.kill('SIGKILL'));
    const end = (): void => {
      begin();
      if (!started)
        refuse(
          response,
          received > limit ? 413 : 500,
          received > limit ? `a push is limited to ${limit} bytes` : 'git did not respond',
        );
      else response.end();
    };
    backend.on('close', () => {
      clearTimeout(timer);
      // git may respond before it has read everything. Read and discard the rest.
      request.unpipe(backend.stdin);
      if (request.complete || received > limit) end();
      else request.resume().on('end', end);
      done();
    });
  });
}

/**
 * Waits for a slot, first come first served. Returns false if too many requests are waiting or the caller has
 * disconnected; then there is no slot to release.
 */
function awaitSlot(response: ServerResponse): Promise<boolean> {
  return new Promise((done) => {
    const begin = (): void => {
      response.off('close', giveUp);
      running += 1;
      done(true);
    };
    const giveUp = (): void => {
      waiting.splice(waiting.indexOf(begin), 1);
      done(false);
    };
    if (response.destroyed) {
      done(false);
      return;
    }
    if (waiting.length >= maximumWaiting) {
      refuse(response, 503, 'too many git requests at once', { 'retry-after': '2' });
      done(false);
      return;
    }
    if (running < atOnce) {
      begin();
      return;
    }
    response.once('close', giveUp);
    waiting.push(begin);
  });
}

function releaseSlot(): void {
  running -= 1;
  waiting.shift()?.();
}

/** Rejects requests that this port does not serve. Returns whether to serve the request. */
async function admit(
  request: IncomingMessage,
  response: ServerResponse,
  target: Target,
  isForBuilds: boolean,
): Promise<boolean> {
  const authenticate = { 'www-authenticate': 'Basic realm="moorage git"' };
  if (isForBuilds && target.push) {
    refuse(response, 403, 'nothing is pushed at this address; push through the gateway');
    return false;
  }
  if (isForBuilds && !(await canFetch(request, target))) {
    refuse(response, 401, `reading ${target.owner}/${target.name} here requires a token for it`, authenticate);
    return false;
  }
  if (target.push && !(await canPush(request))) {
    refuse(response, 401, 'pushing requires the password in .moorage/git-password, with any user name', authenticate);
    return false;
  }
  return true;
}

async function handle(request: IncomingMessage, response: ServerResponse, isForBuilds: boolean): Promise<void> {
  if (request.url === '/healthz') {
    response.end('ok\n');
    return;
  }
  const target = parseTarget(request.method ?? '', request.url ?? '');
  if (target === undefined) {
    refuse(response, 404, 'this is a git server: clone /<owner>/<name>.git');
    return;
  }
  if (!(await admit(request, response, target, isForBuilds))) return;
  const folder = join(repositories, target.owner, `${target.name}.git`);
  if (!(await isRepository(folder))) {
    if (!target.push) {
      refuse(response, 404, `there is no repository ${target.owner}/${target.name}; a push creates it`);
      return;
    }
    await createRepository(folder);
  }
  if (!(await awaitSlot(response))) return;
  await serve(request, response, target).finally(releaseSlot);
}

/** Listens at a port. */
function listen(at: number, isForBuilds: boolean): Server {
  const server = createServer((request, response) => {
    handle(request, response, isForBuilds).catch((error: unknown) => {
      process.stderr.write(`${error instanceof Error ? (error.stack ?? error.message) : String(error)}\n`);
      if (!response.headersSent) refuse(response, 500, 'the git server failed; see its log');
      else response.destroy();
    });
  });
  server.requestTimeout = requestMs;
  return server.listen(at);
}

const servers = [listen(port, false), listen(buildsPort, true)];
process.on('SIGTERM', () => {
  const closed = servers.map((server) => {
    server.closeIdleConnections();
    return new Promise((done) => server.close(done));
  });
  void Promise.all(closed).then(() => process.exit(0));
});
