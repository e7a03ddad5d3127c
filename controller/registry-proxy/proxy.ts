// The way to the registry: takes a token of one app, and passes on what it opens to builds, and to the operator.
import {
  Agent as HttpAgent,
  createServer,
  type ClientRequest,
  request as requestHttp,
  type IncomingMessage,
  type Server,
  type ServerResponse,
} from 'node:http';
import { Agent as HttpsAgent, request as requestHttps } from 'node:https';
import { pipeline } from 'node:stream/promises';
import type { Logger } from '../../lib/telemetry.ts';
import { cacheRepository, imageRepository } from '../../crds/names.ts';
import { parseRegistryToken, type AppIdentity, type TokenPurpose } from '../../lib/app-tokens.ts';
import { judge, type RegistryRequest } from './access.ts';
import type { Authorize } from './authorization.ts';
import { fullMessage, type Fullness } from './fullness.ts';
import { expectation, sendOn } from './onward.ts';
import { uploadName, uploadTarget } from './uploads.ts';

export interface ProxyOptions {
  /** Base URL of the registry, without a path. */
  readonly registry: string;
  readonly authorize: Authorize;
  /** Makes and proves the tokens of apps. */
  readonly tokenSecret: string;
  /** The registry stands in for Docker Hub, so that base images are read through here. */
  readonly mirrors: boolean;
  /** Whether the registry has space, as its answers show. */
  readonly fullness: Fullness;
  readonly log: Logger;
}

/** Who asks, and what for. */
type Identity = AppIdentity & { readonly purpose: TokenPurpose };

/** Where the operator asks whether the registry has space. */
export const spacePath = '/space';

/** The registry said nothing for this long. */
const idleMilliseconds = 300_000;

/** An answer that says why a push failed is no longer than this. */
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

/** The server; it does not listen yet. */
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
  // Layers take as long as they take; a connection on which nothing moves is ended below.
  server.requestTimeout = 0;
  server.setTimeout(idleMilliseconds);
  server.on('close', () => {
    agent.destroy();
  });

  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    // Without a token: a build learns no more by it than by its push.
    if (request.method === 'GET' && request.url === spacePath) {
      response.setHeader('content-type', 'application/json');
      response.end(JSON.stringify({ refusal: options.fullness.refusal }));
      return;
    }
    const app = parseRegistryToken(passwordOf(request), options.tokenSecret);
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
    const decision = judge(method, url, app, options.mirrors);
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
    const known = session === undefined ? path : uploadTarget(repository, session, options.tokenSecret);
    if (known === undefined) {
      refuse(response, 404, 'BLOB_UPLOAD_UNKNOWN', 'There is no such upload in this repository.');
      return;
    }
    const target = new URL(known, registry);
    if (target.origin !== registry.origin) throw new Error('it named an upload that is not its own');
    for (const [name, value] of query) target.searchParams.append(name, value);
    const reply = await forward(request, target, await options.authorize(scopesOf(repository, app)));
    const error = await errorOf(request, reply);
    if (isFull(request, reply, error)) {
      options.log.warn({ app: app.name, answer: error?.toString().slice(0, 300) }, 'the registry has no space left');
      refuse(response, 507, 'UNKNOWN', fullMessage);
      return;
    }
    await handBack(reply, { target, repository, error }, response);
  }

  /** The reply of the registry to the same request. */
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
        headers: { ...headers, ...expectation(request), ...(authorization === undefined ? {} : { authorization }) },
      });
      return onward.on('timeout', () => {
        onward.destroy(new Error(`no answer for ${idleMilliseconds / 1000} s`));
      });
    };
    return await sendOn(start, request);
  }

  /** Takes note of it as well. */
  function isFull(
    { method }: IncomingMessage,
    { statusCode = 502 }: IncomingMessage,
    error: Buffer | undefined,
  ): boolean {
    return !isReading(method) && options.fullness.note(statusCode, error?.toString() ?? '');
  }

  async function handBack(
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
    if (location !== undefined) response.setHeader('location', here(new URL(location, target), status, repository));
    response.writeHead(status);
    if (error === undefined) await pipeline(reply, response);
    else response.end(error);
  }

  /** An upload gets a name of ours; an address elsewhere, as of the store of large layers, stays as it is. */
  function here(location: URL, status: number, repository: string): string {
    if (location.origin !== registry.origin) return location.href;
    const path = `${location.pathname}${location.search}`;
    return status === 202 || status === 204
      ? `/v2/${repository}/blobs/uploads/${uploadName(repository, path, options.tokenSecret)}`
      : path;
  }

  return server;
}

function isReading(method: string | undefined): boolean {
  return method === 'GET' || method === 'HEAD';
}

/** What a write that failed was answered, whole: its length was announced. */
async function errorOf({ method }: IncomingMessage, reply: IncomingMessage): Promise<Buffer | undefined> {
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

/** Of its own repositories an app may have both at once, so that a layer of one can be mounted in the other. */
function scopesOf(repository: string, app: Identity): string[] {
  if (app.purpose === 'prune') return [`repository:${repository}:pull,delete`];
  const own = [imageRepository(app), cacheRepository(app)];
  return own.includes(repository)
    ? own.map((each) => `repository:${each}:pull,push`)
    : [`repository:${repository}:pull`];
}

function passwordOf({ headers }: IncomingMessage): string {
  const [scheme = '', value = ''] = (headers.authorization ?? '').split(' ');
  if (scheme.toLowerCase() !== 'basic') return '';
  return Buffer.from(value, 'base64')
    .toString()
    .replace(/^[^:]*:/, '');
}

/** An error as the distribution API has it. */
function refuse(response: ServerResponse, status: number, code: string, message: string): void {
  response.writeHead(status, { 'content-type': 'application/json' });
  response.end(`${JSON.stringify({ errors: [{ code, message }] })}\n`);
}
