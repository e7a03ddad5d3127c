// Calls the API of an installation with the author's key, and finds the app that a command is about.
import { execa } from 'execa';
import { z } from 'zod';
import { UsageError } from '../../lib/command-line.ts';
import { readRepository, registryHosts, RepositoryError } from '../../lib/repository.ts';
import {
  type ApiResponse,
  type Connection,
  createConnection,
  followEvents,
  parseAnswer,
  type ReconnectOptions,
  type RequestOptions,
} from '../submit/api-client.ts';
import { Fault, parseJson } from '../submit/installation.ts';
import type { Target } from './config.ts';
import { readProblemSlug } from './output.ts';

export interface ApiRequest<Schema extends z.ZodType> {
  /** GET unless set. */
  readonly method?: 'GET' | 'POST' | 'PUT' | 'DELETE';
  readonly path: string;
  readonly query?: Readonly<Record<string, string | undefined>>;
  readonly body?: unknown;
  /** What is read of the answer; further fields are kept. */
  readonly schema: Schema;
  /** What an older installation does not offer, in the plural or as a mass noun: `secrets`. */
  readonly feature: string;
}

/** An answer of which nothing must be known. */
export const anyAnswer = z.looseObject({ message: z.string().optional() });

const submitStatus = z.looseObject({
  status: z.string(),
  message: z.string(),
  repo: z.string(),
  slug: z.string(),
  url: z.string(),
  log_url: z.string(),
});
export type SubmitStatus = z.output<typeof submitStatus>;

export class Api {
  readonly target: Target;
  readonly #connection: Connection;
  readonly #reconnect: ReconnectOptions;

  constructor(target: Target, reconnect: ReconnectOptions = {}) {
    this.target = target;
    this.#reconnect = reconnect;
    const { address: baseUrl, authority, local } = target;
    this.#connection =
      local === undefined
        ? createConnection({ baseUrl, authority }, 'check the address and your network')
        : createConnection({ baseUrl, authority });
  }

  /** @throws Fault if the API refuses the request, or answers something else than JSON of this form */
  async call<Schema extends z.ZodType>(request: ApiRequest<Schema>): Promise<z.output<Schema>> {
    const { method = 'GET', path, body, schema } = request;
    const response = await this.#ask(request, {
      method,
      headers: { accept: 'application/json', ...(body === undefined ? {} : { 'content-type': 'application/json' }) },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    return parseAnswer(schema, await response.text(), `${method} ${path}`);
  }

  /** The answer as it is, for downloads. */
  async download(request: Omit<ApiRequest<z.ZodType>, 'schema'>): Promise<ApiResponse> {
    return this.#ask(request, { method: request.method ?? 'GET' });
  }

  /** The data of the events of a stream, until its event `end`. Resumes it after an interruption. */
  async *follow(
    request: Omit<ApiRequest<z.ZodType>, 'schema' | 'body' | 'method'>,
  ): AsyncGenerator<{ readonly event: string; readonly data: unknown }, void, undefined> {
    try {
      const url = this.#formatUrl(request);
      for await (const { event = 'message', data } of followEvents(this.#connection, url, {
        ...this.#reconnect,
        headers: this.#authorize(),
      })) {
        yield { event, data: parseJson(data) };
        if (event === 'end') return;
      }
    } catch (error) {
      throw explainMissingEndpoint(error, request.feature, this.target.address);
    }
  }

  async close(): Promise<void> {
    await this.#connection.close();
  }

  #formatUrl({ path, query = {} }: Pick<ApiRequest<z.ZodType>, 'path' | 'query'>): string {
    const url = new URL(`${this.target.address}${path}`);
    for (const [name, value] of Object.entries(query)) if (value !== undefined) url.searchParams.set(name, value);
    return url.href;
  }

  #authorize(): Record<string, string> {
    return this.target.key === undefined ? {} : { authorization: `Bearer ${this.target.key}` };
  }

  async #ask(request: Omit<ApiRequest<z.ZodType>, 'schema'>, options: RequestOptions): Promise<ApiResponse> {
    const headers = { ...options.headers, ...this.#authorize() };
    try {
      return await this.#connection.ask(this.#formatUrl(request), { ...options, headers });
    } catch (error) {
      throw explainMissingEndpoint(error, request.feature, this.target.address);
    }
  }
}

/** A refusal by an installation that has no such endpoint becomes a sentence that says so. */
function explainMissingEndpoint(error: unknown, feature: string, address: string): unknown {
  if (!(error instanceof Fault) || error.refusal === undefined) return error;
  const slug = readProblemSlug(error.refusal);
  const { status, requestId } = error.refusal;
  const isMissing =
    slug === 'not-found' || slug === 'method-not-allowed' || (slug === undefined && (status === 404 || status === 405));
  if (!isMissing) return error;
  const message = `this installation does not offer ${feature} yet (${address}): ask its operator to upgrade it`;
  return new Fault(message, { cause: error, refusal: { status, requestId, problem: undefined } });
}

// Apps

export interface AppChoice {
  /** A slug, owner/name or an address; undefined for the repository of the folder. */
  readonly name: string | undefined;
  readonly folder: string;
}

/** The slug of an app. @throws UsageError without a name outside of a clone, Fault if the repository is not hosted */
export async function resolveSlug(api: Api, choice: AppChoice): Promise<string> {
  const name = choice.name ?? '';
  return isSlug(name) ? name : (await fetchStatus(api, choice)).slug;
}

const isSlug = (name: string): boolean => /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/.test(name);

/** The public status of an app. @throws as resolveSlug */
export async function fetchStatus(api: Api, { name, folder }: AppChoice): Promise<SubmitStatus> {
  const path =
    name !== undefined && isSlug(name) ? await findStatusPath(api, name) : await findRepositoryPath(name, folder);
  return api.call({ path, schema: submitStatus, feature: 'the status of apps' });
}

const project = z.looseObject({ status_url: z.string().nullable() });

async function findStatusPath(api: Api, slug: string): Promise<string> {
  const { status_url: url } = await api.call({
    path: `/api/projects/${slug}`,
    schema: project,
    feature: 'the list of apps',
  });
  if (url === null) throw new Fault(`${slug} is not hosted here. Submit its repository with \`moorage submit\``);
  // The address in the answer may be another one than that at which this machine reaches the API.
  const { pathname, search } = new URL(url);
  return `${pathname}${search}`;
}

async function findRepositoryPath(name: string | undefined, folder: string): Promise<string> {
  const address = name ?? (await readOrigin(folder));
  const { host, owner, name: repository } = parseAppAddress(address);
  const query = host === undefined ? '' : `?host=${encodeURIComponent(host)}`;
  return `/api/submit-status/${encodeURIComponent(owner)}/${encodeURIComponent(repository)}${query}`;
}

const deployKey = z.looseObject({
  repo: z.string(),
  public_key: z.string(),
  fingerprint: z.string(),
  page: z.string().optional(),
});

/** The deploy key of a repository, which need not be hosted. @throws as resolveSlug */
export async function fetchDeployKey(api: Api, { name, folder }: AppChoice): Promise<z.output<typeof deployKey>> {
  const isApp = name !== undefined && isSlug(name);
  const path = isApp ? await findStatusPath(api, name) : await findRepositoryPath(name, folder);
  const feature = 'deploy keys';
  return api.call({ path: path.replace('/api/submit-status/', '/api/deploy-keys/'), schema: deployKey, feature });
}

/** The address of the repository from which a folder was cloned. */
async function readOrigin(folder: string): Promise<string> {
  const { exitCode, stdout } = await execa('git', ['-C', folder, 'remote', 'get-url', 'origin'], { reject: false });
  if (exitCode === 0 && stdout.trim() !== '') return stdout.trim();
  throw new UsageError('which app? Name it (APP), or call this in a clone of its repository');
}

/** The parts of owner/name, a package, or an address of git; credentials in it are left out. @throws UsageError */
export function parseAppAddress(text: string): { host?: string; owner: string; name: string } {
  if (/^(?:npm|pypi):/i.test(text)) {
    const parsed = readRepository(text, { allowed: registryHosts, insecure: [] });
    if (parsed instanceof RepositoryError) throw new UsageError(parsed.message);
    return parsed;
  }
  const { host, path } = splitAddress(text);
  const [owner, name, ...rest] = path.split('/').filter((part) => part !== '');
  if (owner === undefined || name === undefined || rest.length > 0)
    throw new UsageError('APP must be the name of an app, OWNER/NAME or the address of a repository');
  return { ...(host === undefined ? {} : { host }), owner, name: name.replace(/\.git$/i, '') };
}

function splitAddress(text: string): { host: string | undefined; path: string } {
  if (/^[a-z][a-z0-9+.-]*:\/\//i.test(text) && URL.canParse(text)) {
    const { protocol, host, hostname, pathname } = new URL(text);
    // The port of ssh is not that of the pages.
    return { host: /^https?:$/.test(protocol) ? host : hostname, path: pathname };
  }
  const [, host, path = ''] = /^(?:[^@/\s]+@)?([^@:/\s]+):(.+)$/.exec(text) ?? [];
  return host === undefined ? { host, path: text } : { host, path };
}
