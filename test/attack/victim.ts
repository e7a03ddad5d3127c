// The installation that is attacked, as the attacks reach it: by HTTP, by kubectl, and by what they submit.
import { mkdir, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { Agent, buildConnector, request } from 'undici';
import { z } from 'zod';
import { isProtected } from '../../crds/access.ts';
import { hostedApp, type HostedApp } from '../../crds/hosted-app.ts';
import type { Kubectl } from '../../localnode/kubectl.ts';
import { paths } from '../../localnode/paths.ts';
import { createApiClient, resolveHost } from '../../cli/submit/api-client.ts';
import type { Installation } from '../../cli/submit/installation.ts';
import { createOutput } from '../../cli/submit/output.ts';
import { pushSnapshot, takeSnapshot } from '../../cli/submit/snapshot.ts';
import { submit } from '../../cli/submit/submit.ts';

export interface Answer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly body: string;
}

export interface ServiceAccount {
  readonly namespace: string;
  readonly name: string;
}

export interface AskOptions {
  readonly method?: 'GET' | 'HEAD' | 'POST' | 'PUT' | 'DELETE';
  readonly headers?: Readonly<Record<string, string>>;
  /** Sent as JSON. */
  readonly json?: unknown;
  /** Sent as it is. */
  readonly text?: string;
}

/** How a submission ended, and all that was printed on the way. */
export interface Submission {
  readonly live: boolean;
  readonly output: string;
}

const deployment = z.object({
  spec: z.object({
    template: z.object({
      spec: z.object({
        containers: z.array(z.object({ env: z.array(z.object({ name: z.string(), value: z.string().default('') })) })),
      }),
    }),
  }),
});

const patience = 300_000;

export class Victim {
  readonly hasKubectl: boolean;
  readonly hasGit: boolean;
  readonly #installation: Installation;
  readonly #kubectl: Kubectl | undefined;
  readonly #namespace: string;
  readonly #agent: Agent;
  readonly #submitted = new Set<string>();
  #settings: Promise<Readonly<Record<string, string>>> | undefined;

  constructor(installation: Installation, kubectl: Kubectl | undefined, namespace: string) {
    this.#installation = installation;
    this.#kubectl = kubectl;
    this.#namespace = namespace;
    this.hasKubectl = kubectl !== undefined;
    this.hasGit = installation.gitPassword !== undefined;
    const ca = installation.authority?.pem;
    const connect = buildConnector({ lookup: resolveHost, ...(ca === undefined ? {} : { ca }) });
    this.#agent = new Agent({
      connections: 128,
      headersTimeout: patience,
      bodyTimeout: patience,
      // TLS is for the host of the URL, also where an attack sends another name in the header Host.
      connect: (options, callback) => {
        connect({ ...options, servername: options.hostname }, callback);
      },
    });
  }

  get authority(): string | undefined {
    return this.#installation.authority?.pem;
  }

  get baseUrl(): URL {
    return new URL(this.#installation.baseUrl);
  }

  /** Namespace of the release. */
  get systemNamespace(): string {
    return this.#namespace;
  }

  async ask(path: string | URL, { method = 'GET', headers = {}, json, text }: AskOptions = {}): Promise<Answer> {
    const {
      statusCode,
      headers: answered,
      body,
    } = await request(new URL(path, this.baseUrl), {
      dispatcher: this.#agent,
      method,
      headers: { ...headers, ...(json === undefined ? {} : { 'content-type': 'application/json' }) },
      ...(json === undefined ? (text === undefined ? {} : { body: text }) : { body: JSON.stringify(json) }),
    });
    return { status: statusCode, headers: answered, body: await body.text() };
  }

  async kubectl(args: readonly string[], input?: string): Promise<string> {
    if (this.#kubectl === undefined) throw new Error('there is no kubectl');
    return await this.#kubectl(args, input);
  }

  /** Whether the API server took it, or refused it. @throws Error when it was not judged at all, as without a right */
  async isTaken(args: readonly string[], input?: string): Promise<boolean> {
    try {
      await this.kubectl(args, input);
      return true;
    } catch (error) {
      const message = error instanceof Error ? error.message : String(error);
      if (/impersonate/.test(message) || !/denied|forbidden|is invalid/i.test(message)) throw error;
      return false;
    }
  }

  /** Whether a service account has a right, like `get` of `secrets`, `create` of `pods/exec`, or of `jobs.batch`. */
  async may(account: ServiceAccount, verb: string, what: string, namespace: string): Promise<boolean> {
    const [named = '', subresource] = what.split('/');
    const [resource, ...group] = named.split('.');
    const review = {
      apiVersion: 'authorization.k8s.io/v1',
      kind: 'SubjectAccessReview',
      spec: {
        user: `system:serviceaccount:${account.namespace}:${account.name}`,
        groups: ['system:authenticated', 'system:serviceaccounts', `system:serviceaccounts:${account.namespace}`],
        resourceAttributes: {
          verb,
          group: group.join('.'),
          resource,
          namespace,
          ...(subresource === undefined ? {} : { subresource }),
        },
      },
    };
    const allowed = ['create', '-f', '-', '-o', 'jsonpath={.status.allowed}'];
    return (await this.kubectl(allowed, JSON.stringify(review))) === 'true';
  }

  /** The environment of a Deployment of the release, which is what the chart's values came to. */
  async environmentOf(name: string): Promise<Readonly<Record<string, string>>> {
    const text = await this.kubectl(['-n', this.#namespace, 'get', 'deployment', name, '-o', 'json']);
    const [first] = deployment.parse(JSON.parse(text)).spec.template.spec.containers;
    return Object.fromEntries((first?.env ?? []).map((each) => [each.name, each.value]));
  }

  /** That of the operator. */
  async settings(): Promise<Readonly<Record<string, string>>> {
    this.#settings ??= this.environmentOf('moorage-operator');
    return await this.#settings;
  }

  async appsNamespace(): Promise<string> {
    return (await this.settings())['MOORAGE_APPS_NAMESPACE'] ?? 'moorage-apps';
  }

  async buildsNamespace(): Promise<string> {
    return (await this.settings())['MOORAGE_BUILDS_NAMESPACE'] ?? 'moorage-builds';
  }

  async app(name: string): Promise<HostedApp> {
    return hostedApp.parse(
      JSON.parse(await this.kubectl(['-n', await this.appsNamespace(), 'get', 'happ', name, '-o', 'json'])),
    );
  }

  /** Any app that is live and public. */
  async liveApp(): Promise<HostedApp> {
    const list = z
      .object({ items: z.array(z.unknown()) })
      .parse(JSON.parse(await this.kubectl(['-n', await this.appsNamespace(), 'get', 'happ', '-o', 'json'])));
    const found = list.items
      .map((item) => hostedApp.parse(item))
      .find(
        ({ metadata, spec, status }) =>
          status?.phase === 'Live' && !metadata.name.startsWith('attack-') && !isProtected(spec),
      );
    if (found === undefined) throw new Error('no app is live that could be attacked');
    return found;
  }

  /** Pushes files as a repository and submits it, as `npm run submit` does. It is removed by {@link remove}. */
  async submit(name: string, files: Readonly<Record<string, string>>): Promise<Submission> {
    const lines: string[] = [];
    const api = createApiClient(this.#installation);
    this.#submitted.add(name);
    try {
      const output = createOutput((line) => {
        lines.push(line);
      });
      const code = await useFolder(name, files, (folder) =>
        submit({ what: folder }, { installation: this.#installation, api, output }),
      );
      return { live: code === 0, output: lines.join('\n') };
    } finally {
      await api.close();
    }
  }

  /** Pushes files as a repository and requests nothing of the API. Returns the address inside the cluster. */
  async push(name: string, files: Readonly<Record<string, string>>): Promise<string> {
    return await useFolder(name, files, async (folder) => {
      const snapshot = await takeSnapshot(folder);
      try {
        return await pushSnapshot(snapshot, name, this.#installation);
      } finally {
        await snapshot.remove();
      }
    });
  }

  /** Pushes files and submits the repository without waiting for its pipeline. Returns the slug that it was given. */
  async register(name: string, files: Readonly<Record<string, string>>): Promise<string | undefined> {
    const repo = await this.push(name, files);
    const { body } = await this.ask('/api/submit', { method: 'POST', json: { repo } });
    const { data } = z.looseObject({ slug: z.string() }).safeParse(JSON.parse(body));
    if (data !== undefined) this.#submitted.add(data.slug);
    return data?.slug;
  }

  /** Address of a repository that there is none of, on the git server that local folders are pushed to. */
  repositoryNamed(name: string): string {
    return `${this.#installation.internalGitUrl}/attack/${name}`;
  }

  /** Says that an app was made, so that it is removed. */
  made(name: string): void {
    this.#submitted.add(name);
  }

  /** An app that is live, made of files. @throws Error with what was printed when it is not. */
  async host(name: string, files: Readonly<Record<string, string>>): Promise<void> {
    const { live, output } = await this.submit(name, files);
    if (!live) throw new Error(`the app of this attack did not go live: ${output.slice(-300)}`);
  }

  /** Asks until there is an answer that `wanted` accepts. */
  async until<T>(what: string, probe: () => Promise<T | undefined>, seconds: number): Promise<T> {
    const end = Date.now() + seconds * 1000;
    while (Date.now() < end) {
      const value = await probe().catch(() => undefined);
      if (value !== undefined) return value;
      await delay(500);
    }
    throw new Error(`${what}: not within ${seconds} s`);
  }

  /** Deletes apps before the end, so that no pipeline is run for them in vain. */
  async deleteApps(names: readonly string[]): Promise<void> {
    if (names.length === 0) return;
    await this.kubectl([
      ...['-n', await this.appsNamespace(), 'delete', 'happ', '--ignore-not-found', '--timeout=180s'],
      ...names,
    ]);
    for (const name of names) this.#submitted.delete(name);
  }

  /** Removes every app that was submitted here. */
  async remove(): Promise<void> {
    await this.deleteApps([...this.#submitted]);
    await this.#agent.close();
  }
}

/** Writes files with a licence to a folder of that name, which exists during `use`. */
async function useFolder<T>(
  name: string,
  files: Readonly<Record<string, string>>,
  use: (folder: string) => Promise<T>,
): Promise<T> {
  const parent = await mkdtemp(join(tmpdir(), 'moorage-attack-'));
  const folder = join(parent, name);
  try {
    const licence = await readFile(join(paths.root, 'LICENSE'), 'utf8');
    for (const [file, text] of Object.entries({ LICENSE: licence, ...files })) {
      const path = join(folder, file);
      await mkdir(dirname(path), { recursive: true });
      // Written as `ls` shows a link.
      await (text.startsWith('-> ') ? symlink(text.slice(3), path) : writeFile(path, text));
    }
    return await use(folder);
  } finally {
    await rm(parent, { recursive: true, force: true });
  }
}
