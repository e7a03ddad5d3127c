// A fake forge on loopback with the commit status endpoints of GitHub, GitLab and Gitea in the form that they document, and
// forge tokens in memory. It is no real forge: it knows nothing but repositories, commits and tokens.
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { z } from 'zod';
import type { ForgeTokens, StoredToken } from '../../../api/apps/commit-statuses/store.ts';
import type { ForgeKind, SignInProvider } from '../../../api/apps/sign-in/config.ts';

export interface ForgeRequest {
  readonly path: string;
  readonly authorization: string | undefined;
  readonly body: Readonly<Record<string, unknown>>;
}

/** An answer instead of what the forge would do. */
export interface ForgeFault {
  readonly status: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: object;
}

export interface FakeForge {
  /** Host and port, which the fetcher has to allow. */
  readonly host: string;
  readonly apiUrl: string;
  readonly requests: ForgeRequest[];
  /** Tokens that may set statuses, and those that may not. */
  readonly tokens: Map<string, 'write' | 'read'>;
  /** Answers the next requests, the first one first. */
  readonly faults: ForgeFault[];
  /** Commits that the repository does not have. */
  readonly missing: Set<string>;
  /** Called while a request is being answered. */
  during: () => Promise<void>;
  /** The latest state of each commit. */
  readonly states: Map<string, string>;
  stop(): Promise<void>;
}

const status = z.looseObject({
  state: z.string(),
  description: z.string().max(140),
  target_url: z.url(),
  context: z.literal('moorage').optional(),
  name: z.literal('moorage').optional(),
});
const states: Readonly<Record<ForgeKind, readonly string[]>> = {
  github: ['error', 'failure', 'pending', 'success'],
  gitea: ['error', 'failure', 'pending', 'success', 'warning'],
  gitlab: ['pending', 'running', 'success', 'failed', 'canceled', 'skipped'],
};
const paths: Readonly<Record<ForgeKind, RegExp>> = {
  github: /^\/repos\/octo\/mine\/statuses\/([0-9a-f]{40})$/,
  gitea: /^\/repos\/octo\/mine\/statuses\/([0-9a-f]{40})$/,
  gitlab: /^\/projects\/octo%2Fmine\/statuses\/([0-9a-f]{40})$/,
};
/** Error bodies as each forge documents them. */
const errors = {
  github: {
    401: { message: 'Bad credentials', documentation_url: 'https://docs.github.com/rest' },
    403: { message: 'Resource not accessible by personal access token' },
    404: { message: 'Not Found' },
    commit: [422, { message: 'No commit found for SHA' }],
  },
  gitea: {
    401: { message: 'invalid username, password or token' },
    403: { message: 'token does not have at least one of required scope(s): [write:repository]' },
    404: { message: 'The target could not be found.' },
    commit: [404, { message: 'object does not exist [id: , rel_path: ]' }],
  },
  gitlab: {
    401: { message: '401 Unauthorized' },
    403: { message: '403 Forbidden' },
    404: { message: '404 Project Not Found' },
    commit: [404, { message: '404 Commit Not Found' }],
  },
} as const;

export async function startFakeForge(kind: ForgeKind): Promise<FakeForge> {
  const server = createServer((request, response) => {
    answer(request, response).catch((error: unknown) => {
      response.writeHead(400).end(JSON.stringify({ message: String(error) }));
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const host = `127.0.0.1:${(server.address() as AddressInfo).port}`;
  const forge: FakeForge = {
    ...{ host, apiUrl: `http://${host}`, requests: [], tokens: new Map(), faults: [] },
    ...{ missing: new Set(), states: new Map(), during: () => Promise.resolve() },
    async stop() {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const sent = status.parse(JSON.parse(Buffer.concat(chunks).toString('utf8')));
    const { url = '', headers } = request;
    forge.requests.push({ path: url, authorization: headers.authorization, body: sent });
    await forge.during();
    const found = forge.faults.shift() ?? decide(request.method, url, headers.authorization, sent.state);
    response
      .writeHead(found.status, { 'content-type': 'application/json', ...found.headers })
      .end(JSON.stringify(found.body ?? { id: 1, ...sent }));
  }
  function decide(
    method: string | undefined,
    url: string,
    authorization: string | undefined,
    state: string,
  ): ForgeFault {
    const right = forge.tokens.get(String(authorization).replace(/^Bearer /, ''));
    const commit = paths[kind].exec(url)?.[1];
    if (right === undefined) return { status: 401, body: errors[kind][401] };
    if (method !== 'POST' || commit === undefined) return { status: 404, body: errors[kind][404] };
    if (right === 'read') return { status: 403, body: errors[kind][403] };
    const [status, body] = errors[kind].commit;
    if (forge.missing.has(commit)) return { status, body };
    if (!states[kind].includes(state)) return { status: 422, body: { message: 'Validation Failed' } };
    if (`${kind} ${forge.states.get(commit)} ${state}` === 'gitlab pending pending')
      return { status: 400, body: { message: 'Cannot transition status via :enqueue from :pending' } };
    forge.states.set(commit, state);
    return { status: 201 };
  }
  return forge;
}

/** Makes git.test a Gitea that an installation knows. Nothing answers there. */
export const knownGitea: SignInProvider = {
  ...{ id: 'git', label: 'Git', forge: 'gitea', issuer: new URL('https://git.test'), scopes: '' },
  ...{ clientId: 'x', clientSecret: 'y', apiUrl: 'https://git.test/api/v1', host: 'git.test' },
};

/** As the Secret of an installation keeps them. */
export class MemoryForgeTokens implements ForgeTokens {
  readonly stored = new Map<string, StoredToken>();

  read(): Promise<ReadonlyMap<string, StoredToken>> {
    return Promise.resolve(new Map(this.stored));
  }

  write(app: string, token: StoredToken | undefined): Promise<void> {
    if (token === undefined) this.stored.delete(app);
    else this.stored.set(app, token);
    return Promise.resolve();
  }

  async removeUnknown(listKnown: () => Promise<ReadonlySet<string>>): Promise<number> {
    const known = await listKnown();
    const unknown = [...this.stored.keys()].filter((app) => !known.has(app));
    for (const app of unknown) this.stored.delete(app);
    return unknown.length;
  }
}
