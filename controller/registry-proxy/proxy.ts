// The registry proxy's server: authenticates an app's token, and forwards the requests it allows to the registry.
import { once } from 'node:events';
import {
  Agent as HttpAgent,
  createServer,
  request as requestHttp,
  type ClientRequest,
  type IncomingMessage,
  type Server,
  type ServerResponse,
} from 'node:http';
import { Agent as HttpsAgent, request as requestHttps } from 'node:https';
import { pipeline } from 'node:stream/promises';
import { setTimeout as delay } from 'node:timers/promises';
import { formatCacheRepository, formatImageRepository } from '../../crds/names.ts';
import { parseRegistryToken, type AppIdentity, type TokenPurpose } from '../../lib/app-tokens.ts';
import type { Logger } from '../../lib/telemetry.ts';
import { judgeRequest, openUpload, sealUpload, type RegistryRequest } from './access.ts';
import type { Authorize } from './account.ts';

export interface ProxyOptions {
  /** Base URL of the registry, without a path. */
  readonly registry: string;
  readonly authorize: Authorize;
  /** Signs and verifies the tokens of apps. */
  readonly tokenSecret: string;
  /** The registry stands in for Docker Hub, so that base images are read through here. */
  readonly mirrors: boolean;
  /** Whether the registry has space, as its answers show. */
  readonly fullness: Fullness;
  readonly log: Logger;
}

/** The app or the operator, and the purpose of its token. */
type Identity = AppIdentity & { readonly purpose: TokenPurpose };

/** A repository, and whose request names it. */
interface Target {
  readonly repository: string;
  readonly app: Identity;
}

/** The operator requests this path to learn whether the registry has space. */
export const spacePath = '/space';

/** A connection on which nothing moves for this long is closed. */
const idleMilliseconds = 300_000;
/** The registry has this long to link a layer; after that, the build uploads it. */
const askMilliseconds = 10_000;

/** Layers of base images that are remembered. */
const maximumLayers = 5_000;

/** Maximum size of an answer that explains a failed push. */
const errorBytes = 64 * 1024;

const requestHeaders = [
  'accept',
  'content-type',
  'content-length',
  'content-range',
  'range',
  'user-agent',
  'transfer-encoding',
];
const responseHeaders = [
  'content-type',
  'content-length',
  'content-range',
  'accept-ranges',
  'docker-content-digest',
  'docker-distribution-api-version',
  'docker-upload-uuid',
  'etag',
  'link',
  'oci-subject',
  'range',
  'retry-after',
];

/** Creates the server; it does not listen yet. */
export function createProxy(options: ProxyOptions): Server {
  const registry = new URL(options.registry);
  const secure = registry.protocol === 'https:';
  const agent = secure ? new HttpsAgent({ keepAlive: true }) : new HttpAgent({ keepAlive: true });
  const server = createServer((request, response) => {
    answer(request, response).catch((error: unknown) => {
      const message = error instanceof Error ? error.message : String(error);
      options.log.warn({ error: message }, 'a request to the registry failed');
      if (response.headersSent) response.destroy();
      else refuse(response, 502, 'UNAVAILABLE', `The registry cannot be reached: ${message}.`);
    });
  });
  // A layer may take any time; a connection on which nothing moves is closed below.
  server.requestTimeout = 0;
  server.setTimeout(idleMilliseconds);
  server.on('close', () => {
    agent.destroy();
  });

  /** The repository of a base image by the digest of each of its layers. Every build may read these. */
  const baseLayers = new Map<string, string>();

  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    // Needs no token: a build learns no more from it than from a push.
    if (request.method === 'GET' && request.url === spacePath) {
      response.setHeader('content-type', 'application/json');
      response.end(JSON.stringify({ refusal: options.fullness.refusal }));
      return;
    }
    const app = parseRegistryToken(readPassword(request), options.tokenSecret);
    if (app === undefined) {
      response.setHeader('www-authenticate', 'Basic realm="moorage"');
      refuse(response, 401, 'UNAUTHORIZED', 'The token of an app is required.');
      return;
    }
    const { method = 'GET', url = '/' } = request;
    if (/^\/v2\/?$/.test(url)) {
      response.end();
      return;
    }
    const decision = judgeRequest(method, url, app, options.mirrors);
    if ('refused' in decision) {
      options.log.info({ app: app.name, method, url, status: decision.status }, 'refused');
      refuse(response, decision.status, decision.status === 403 ? 'DENIED' : 'UNSUPPORTED', decision.refused);
      return;
    }
    await pass(request, response, app, decision.allowed);
  }

  async function pass(
    request: IncomingMessage,
    response: ServerResponse,
    app: Identity,
    { repository, path, query, session }: RegistryRequest,
  ): Promise<void> {
    const known = session === undefined ? path : openUpload(repository, session, options.tokenSecret);
    if (known === undefined) {
      refuse(response, 404, 'BLOB_UPLOAD_UNKNOWN', 'There is no such upload in this repository.');
      return;
    }
    const target = new URL(known, registry);
    if (target.origin !== registry.origin) throw new Error('it named an upload that is not its own');
    for (const [name, value] of query) target.searchParams.append(name, value);
    const authorization = await options.authorize(listScopes(repository, app));
    let reply = await forward(request, target, authorization);
    const digest = /\/blobs\/([^/]+:[0-9a-f]+)$/.exec(path)?.[1];
    if (digest !== undefined && (await isLinked(digest, { request, reply, repository, app }))) {
      reply.resume();
      reply = await forward(request, target, authorization);
    }
    const error = await readError(request, reply);
    if (isFull(request, reply, error)) {
      options.log.warn({ app: app.name, answer: error?.toString().slice(0, 300) }, 'the registry has no space left');
      refuse(response, 507, 'UNKNOWN', fullMessage);
      return;
    }
    await sendReply(reply, { target, repository, error }, response);
  }

  /**
   * True if the registry did not have the layer in the app's repository, and has linked it there now. A build asks for each
   * layer before it uploads it. Those of its base image it would upload again, since it read them by their names at Docker Hub.
   */
  async function isLinked(
    digest: string,
    { request, reply, repository, app }: { request: IncomingMessage; reply: IncomingMessage } & Target,
  ): Promise<boolean> {
    const { statusCode: status = 502 } = reply;
    if (!listOwnRepositories(app).includes(repository)) {
      if (baseLayers.size >= maximumLayers) baseLayers.clear();
      if (status < 400) baseLayers.set(digest, repository);
      return false;
    }
    const source = baseLayers.get(digest);
    if (request.method !== 'HEAD' || status !== 404 || app.purpose !== 'push' || source === undefined) return false;
    return await link(digest, source, { repository, app }).catch(() => false);
  }

  async function link(digest: string, source: string, { repository, app }: Target): Promise<boolean> {
    const scopes = [...listScopes(repository, app), `repository:${source}:pull`];
    const authorization = await options.authorize(scopes);
    const target = new URL(`/v2/${repository}/blobs/uploads/`, registry);
    target.searchParams.set('mount', digest);
    target.searchParams.set('from', source);
    const { statusCode, headers } = await ask('POST', target, authorization);
    // A registry that does not link has begun an upload instead.
    const upload = headers.location === undefined ? undefined : new URL(headers.location, target);
    if (statusCode === 202 && upload?.origin === registry.origin) await ask('DELETE', upload, authorization);
    return statusCode === 201;
  }

  /** Sends a request without a body to the registry, and drops the body of its reply. */
  async function ask(method: string, target: URL, authorization: string | undefined): Promise<IncomingMessage> {
    const headers = { 'content-length': 0, ...(authorization === undefined ? {} : { authorization }) };
    const onward = (secure ? requestHttps : requestHttp)(target, { method, agent, timeout: askMilliseconds, headers });
    onward.on('timeout', () => {
      onward.destroy(new Error(`no answer for ${askMilliseconds / 1000} s`));
    });
    onward.end();
    const [reply] = (await once(onward, 'response')) as [IncomingMessage];
    reply.resume();
    return reply;
  }

  /** Sends the request to the registry, and returns its reply. */
  async function forward(
    request: IncomingMessage,
    target: URL,
    authorization: string | undefined,
  ): Promise<IncomingMessage> {
    const headers = Object.fromEntries(
      requestHeaders.flatMap((name) => (request.headers[name] === undefined ? [] : [[name, request.headers[name]]])),
    );
    const start = (): ClientRequest => {
      const onward = (secure ? requestHttps : requestHttp)(target, {
        method: request.method ?? 'GET',
        agent,
        timeout: idleMilliseconds,
        headers: {
          ...headers,
          ...buildExpectHeader(request),
          ...(authorization === undefined ? {} : { authorization }),
        },
      });
      return onward.on('timeout', () => {
        onward.destroy(new Error(`no answer for ${idleMilliseconds / 1000} s`));
      });
    };
    return await sendWithRetry(start, request);
  }

  /** Whether the registry had no space for a write. Also records it. */
  function isFull(
    { method }: IncomingMessage,
    { statusCode = 502 }: IncomingMessage,
    error: Buffer | undefined,
  ): boolean {
    return !isReading(method) && options.fullness.noteStatus(statusCode, error?.toString() ?? '');
  }

  async function sendReply(
    reply: IncomingMessage,
    { target, repository, error }: { target: URL; repository: string; error: Buffer | undefined },
    response: ServerResponse,
  ): Promise<void> {
    const { statusCode: status = 502 } = reply;
    if (status === 401 || status === 407) {
      reply.resume();
      throw new Error(`it refuses the account of this installation (${status})`);
    }
    for (const name of responseHeaders) {
      const value = reply.headers[name];
      if (value !== undefined) response.setHeader(name, value);
    }
    const location = reply.headers.location;
    if (location !== undefined)
      response.setHeader('location', rewriteLocation(new URL(location, target), status, repository));
    response.writeHead(status);
    if (error === undefined) await pipeline(reply, response);
    else response.end(error);
  }

  /** An upload gets our own name; an address elsewhere, such as of an object store for large layers, is passed on. */
  function rewriteLocation(location: URL, status: number, repository: string): string {
    if (location.origin !== registry.origin) return location.href;
    const path = `${location.pathname}${location.search}`;
    return status === 202 || status === 204
      ? `/v2/${repository}/blobs/uploads/${sealUpload(repository, path, options.tokenSecret)}`
      : path;
  }

  return server;
}

function isReading(method: string | undefined): boolean {
  return method === 'GET' || method === 'HEAD';
}

/** Reads the whole answer to a failed write, since its length was announced. */
async function readError({ method }: IncomingMessage, reply: IncomingMessage): Promise<Buffer | undefined> {
  if (isReading(method) || (reply.statusCode ?? 502) < 400) return undefined;
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of reply as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    if (bytes > errorBytes) throw new Error(`it answered with an error of more than ${errorBytes} bytes`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

function listOwnRepositories(app: AppIdentity): string[] {
  return [formatImageRepository(app), formatCacheRepository(app)];
}

/** An app's two repositories share a scope, so that a layer of one can be mounted in the other. */
function listScopes(repository: string, app: Identity): string[] {
  if (app.purpose === 'prune') return [`repository:${repository}:pull,delete`];
  const ownRepositories = listOwnRepositories(app);
  return ownRepositories.includes(repository)
    ? ownRepositories.map((each) => `repository:${each}:pull,push`)
    : [`repository:${repository}:pull`];
}

function readPassword({ headers }: IncomingMessage): string {
  const [scheme = '', value = ''] = (headers.authorization ?? '').split(' ');
  if (scheme.toLowerCase() !== 'basic') return '';
  return Buffer.from(value, 'base64')
    .toString()
    .replace(/^[^:]*:/, '');
}

/** Responds with an error in the form of the distribution API. */
function refuse(response: ServerResponse, status: number, code: string, message: string): void {
  response.writeHead(status, { 'content-type': 'application/json' });
  response.end(`${JSON.stringify({ errors: [{ code, message }] })}\n`);
}

// Forwarding to a registry that may be restarting, as it does to free space.

/** How long the registry may be unreachable before the build gets an error. */
const patienceMs = 60_000;
const pauseMs = 250;
/** A server need not send 100 Continue; after this long it gets the body anyway. */
const continueMs = 1_000;

/** Errors of a registry that is stopping: nothing listens, or it has closed the connection. */
const stoppingErrors = ['ECONNREFUSED', 'ECONNRESET', 'EPIPE'];

/** Asks the registry to accept the headers before the body is sent; nothing for a request without a body. */
export function buildExpectHeader({ headers }: IncomingMessage): Readonly<Record<string, string>> {
  return hasBody(headers) ? { expect: '100-continue' } : {};
}

/**
 * Returns the reply of the registry. `start` makes a new request for each try, with its {@link buildExpectHeader}. The body
 * is not sent before the registry accepts it, so a request that a stopping registry drops can be sent again.
 *
 * @throws Error of the connection.
 */
export async function sendWithRetry(start: () => ClientRequest, body: IncomingMessage): Promise<IncomingMessage> {
  const deadline = Date.now() + patienceMs;
  for (;;) {
    const attempt = { isSending: false };
    try {
      return await send(start(), body, attempt);
    } catch (error) {
      if (attempt.isSending || !isStopping(error) || body.destroyed || Date.now() > deadline) throw error;
      await delay(pauseMs);
    }
  }
}

async function send(
  onward: ClientRequest,
  body: IncomingMessage,
  attempt: { isSending: boolean },
): Promise<IncomingMessage> {
  const reply = new Promise<IncomingMessage>((resolve, reject) => {
    onward.on('response', resolve);
    onward.on('error', reject);
  });
  if (!hasBody(body.headers)) {
    onward.end();
    return await reply;
  }
  onward.flushHeaders();
  await Promise.race([reply, waitForContinue(onward)]);
  attempt.isSending = true;
  // A registry may reply before it has read everything, such as with a refusal; its reply counts, not the end of the upload.
  pipeline(body, onward).catch(() => undefined);
  return await reply;
}

/** Resolves once the registry accepts the body, or has had time to do so since the connection opened. */
async function waitForContinue(onward: ClientRequest): Promise<void> {
  await new Promise<void>((resolve) => {
    onward.once('continue', resolve);
    onward.once('socket', (socket) => {
      const wait = (): void => {
        setTimeout(resolve, continueMs).unref();
      };
      if (socket.connecting) socket.once('connect', wait);
      else wait();
    });
  });
}

function hasBody(headers: IncomingMessage['headers']): boolean {
  return headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0;
}

function isStopping(error: unknown): boolean {
  return error instanceof Error && 'code' in error && stoppingErrors.includes(String(error.code));
}

// Detects from the registry's answers to pushes whether it has space left: registries report it in no other way.

/** A push that the registry had no space for. */
export interface Refusal {
  /** ISO 8601 */
  readonly at: string;
  readonly message: string;
}

export interface Fullness {
  /** Records how a write was answered. True if the registry had no space for it. */
  noteStatus(status: number, body: string): boolean;
  /** The last refusal, until a push succeeds again. */
  readonly refusal: Refusal | undefined;
}

/** Messages of the registry itself (28 is ENOSPC, which it writes as a number), of object stores, and of Harbor's quota. */
const fullMessages =
  /no space left on device|"Err":\s*28\b|disk quota exceeded|insufficient (?:storage|space)|quota\b.{0,60}\bexceed|exceed the configured upper limit|XMinioStorageFull/i;

export const fullMessage = 'The registry has no space left: no space left on device.';

export function createFullness(now: () => number = Date.now): Fullness {
  let refusal: Refusal | undefined;
  return {
    noteStatus(status, body) {
      const isFull = status === 507 || (status >= 400 && fullMessages.test(body));
      if (isFull) refusal = { at: new Date(now()).toISOString(), message: body.trim().slice(0, 300) };
      // The upload was stored, so there is space again.
      else if (status === 201) refusal = undefined;
      return isFull;
    },
    get refusal() {
      return refusal;
    },
  };
}
