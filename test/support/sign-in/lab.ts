// A real OpenID Connect provider on loopback, and next to it a fake of a forge's API that knows who can push.
import { once } from 'node:events';
import { createServer, type RequestListener, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Provider } from 'oidc-provider';
import type { SignInProvider } from '../../../api/apps/sign-in/config.ts';
import { findFreePort } from '../free-port.ts';

export interface SignInLab {
  /** As an installation configures it. */
  readonly provider: SignInProvider;
  /** Accounts and the repositories that each can push to, as `octo/hello`. */
  readonly rights: Map<string, Set<string>>;
  /** Paths that the forge's API was asked for. */
  readonly asked: string[];
  /** Makes the forge answer this status to everything; undefined: as usual. */
  failWith: number | undefined;
  close(): void;
}

/** @param baseUrl of the API that signs in; @param host the git host that the forge stands for */
export async function startSignInLab(baseUrl: string, host = 'git.test'): Promise<SignInLab> {
  const port = await findFreePort();
  const issuer = `http://127.0.0.1:${port}`;
  const [clientId, clientSecret] = ['moorage', 'a secret of the client'];
  const oidc = new Provider(issuer, {
    clients: [
      {
        client_id: clientId,
        client_secret: clientSecret,
        redirect_uris: [`${baseUrl}/sign-in/forge/callback`],
        token_endpoint_auth_method: 'client_secret_post',
      },
    ],
    cookies: { keys: ['of this test'] },
    findAccount: (_context, id) => ({ accountId: id, claims: () => ({ sub: id }) }),
    // Everyone who signs in consents.
    async loadExistingGrant({ oidc: { client, session } }) {
      const grant = new oidc.Grant({ clientId: client?.clientId ?? '', accountId: session?.accountId ?? '' });
      grant.addOIDCScope('openid');
      await grant.save();
      return grant;
    },
    features: { devInteractions: { enabled: true } },
    pkce: { required: () => true },
  });
  const rights = new Map<string, Set<string>>();
  const asked: string[] = [];
  const lab: { failWith: number | undefined } = { failWith: undefined };
  const forge: RequestListener = (request, response) => {
    void answerAsForge(request.url ?? '', request.headers.authorization ?? '').then(([status, body]) => {
      response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
    });
  };
  async function answerAsForge(path: string, authorization: string): Promise<[number, object]> {
    asked.push(path);
    if (lab.failWith !== undefined) return [lab.failWith, {}];
    const account = (await oidc.AccessToken.find(authorization.replace(/^Bearer /, '')))?.accountId;
    if (account === undefined) return [401, {}];
    if (path === '/api/v1/user') return [200, { login: account }];
    const repository = /^\/api\/v1\/repos\/([^/]+\/[^/]+)$/.exec(path)?.[1] ?? '';
    return [200, { full_name: repository, permissions: { push: rights.get(account)?.has(repository) ?? false } }];
  }
  const callback = oidc.callback();
  const server = createServer((request, response) => {
    if (request.url?.startsWith('/api/v1/') === true) forge(request, response);
    else void callback(request, response);
  });
  server.listen(port, '127.0.0.1');
  await once(server, 'listening');
  const close = (): void => {
    closeServer(server);
  };
  const provider: SignInProvider = {
    ...{ id: 'forge', label: 'Example Forge', forge: 'gitea', issuer: new URL(issuer), clientId, clientSecret },
    ...{ scopes: 'openid', apiUrl: `${issuer}/api/v1`, host },
  };
  return Object.assign(lab, { provider, rights, asked, close });
}

/** A browser without a screen: it keeps the cookies of one site. */
export class CookieJar {
  readonly #cookies = new Map<string, string>();

  get header(): string {
    return [...this.#cookies].map(([name, value]) => `${name}=${value}`).join('; ');
  }

  store(response: Response): void {
    for (const line of response.headers.getSetCookie()) {
      const [pair = ''] = line.split(';');
      const name = pair.slice(0, pair.indexOf('='));
      const value = pair.slice(name.length + 1);
      if (value === '' || /max-age=0/i.test(line)) this.#cookies.delete(name);
      else this.#cookies.set(name, value);
    }
  }
}

/** Signs in at the provider, and returns the address that it sends the browser back to. */
export async function signInAtProvider(address: string, account: string, jar = new CookieJar()): Promise<URL> {
  let next = new URL(address);
  for (let hops = 0; hops < 10; hops += 1) {
    const response = await visit(next, jar);
    const location = response.headers.get('location');
    if (location !== null) next = new URL(location, next);
    else next = await sendLogin(next, await response.text(), account, jar);
    if (next.pathname.endsWith('/callback')) return next;
  }
  throw new Error(`the sign-in did not end: ${next.href}`);
}

async function visit(url: URL, jar: CookieJar, form?: URLSearchParams): Promise<Response> {
  const response = await fetch(url, {
    redirect: 'manual',
    headers: { cookie: jar.header },
    ...(form === undefined ? {} : { method: 'POST', body: form }),
  });
  jar.store(response);
  return response;
}

async function sendLogin(page: URL, html: string, account: string, jar: CookieJar): Promise<URL> {
  const [, action] = /<form[^>]+action="([^"]+)"/.exec(html) ?? [];
  if (action === undefined) throw new Error(`no form: ${html.slice(0, 500)}`);
  const form = new URLSearchParams({ prompt: 'login', login: account, password: 'any' });
  const response = await visit(new URL(action, page), jar, form);
  return new URL(response.headers.get('location') ?? '', page);
}

/** A server on loopback, at its address. */
export async function listenOnLoopback(listener: RequestListener): Promise<{ url: string; close: () => void }> {
  const server = createServer(listener).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const close = (): void => {
    closeServer(server);
  };
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, close };
}

function closeServer(server: Server): void {
  server.closeAllConnections();
  server.close();
}
