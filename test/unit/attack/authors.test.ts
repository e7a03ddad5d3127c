// The attacks on authors against an API in this process: each holds there, and none would hold against a server that accepts
// everything.
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { App } from '../../../api/apps/hosted-apps.ts';
import { control } from '../../../crds/control.ts';
import { hostedApp, type HostedApp } from '../../../crds/hosted-app.ts';
import { findAuthorKeyHashes } from '../../../lib/ownership-file.ts';
import { attempt } from '../../attack/attack.ts';
import { authorDataAttacks } from '../../attack/attacks/author-data.ts';
import { authorKeyAttacks, staleKeyAttacks } from '../../attack/attacks/author-keys.ts';
import { domainAttacks } from '../../attack/attacks/domains.ts';
import { renameAttacks } from '../../attack/attacks/renames.ts';
import { authorNoticeAttacks } from '../../attack/attacks/author-notices.ts';
import { type Answer, type AskOptions, Victim } from '../../attack/victim.ts';
import { namespace } from '../../support/api/sample.ts';
import { MemoryForgeTokens } from '../../support/apps/fake-forge.ts';
import { type AppsSample, sampleAppsServer } from '../../support/apps/sample.ts';

const attacks = [
  ...authorKeyAttacks,
  ...authorDataAttacks,
  ...authorNoticeAttacks,
  ...domainAttacks,
  ...renameAttacks,
  ...staleKeyAttacks,
];
/** The others need a log, which only a cluster has. */
const local = attacks.filter(({ name }) => !/in its log|in the log/.test(name));

const url = 'https://moorage.test';
const installation = { baseUrl: url, gitUrl: url, internalGitUrl: url, authority: undefined, gitPassword: 'x' };

let sample: AppsSample;

function findApp(slug: string): App {
  const app = sample.store.list(namespace).find(({ metadata }) => metadata.name === slug);
  return app ?? assert.fail(`there is no app ${slug}`);
}

function putApp(app: App): App {
  const version = String(Number(app.metadata.resourceVersion) + 1);
  const made = { ...app, metadata: { ...app.metadata, resourceVersion: version } };
  sample.store.set(made);
  return made;
}

beforeAll(async () => {
  sample = await sampleAppsServer({
    environment: { MOORAGE_APP_TOKEN_SECRET: 'x'.repeat(32) },
    author: {
      lookUpKeys: (repository) => {
        const app = findApp(repository.name);
        const authorKeys = app.status?.authorKeys ?? [];
        return Promise.resolve({ ok: true, commit: 'c'.repeat(40), reference: 'refs/heads/main', authorKeys });
      },
      createSecret: () => Promise.resolve(),
      readApp: (name) => Promise.resolve(sample.store.get(`${namespace}/${name}`)),
      maximumReplicas: 3,
      forgeTokens: new MemoryForgeTokens(),
      offersDomains: true,
      writeControl: (app, change) => {
        const stored = findApp(app.metadata.name);
        const changed: object = {
          ...stored.spec.control,
          ...change(control.parse(stored.spec.control ?? {})),
        };
        const kept = Object.fromEntries(Object.entries(changed).filter(([, value]) => value !== undefined));
        return Promise.resolve(putApp({ ...stored, spec: { ...stored.spec, control: control.parse(kept) } }));
      },
    },
  });
  await sample.host('hello', (_request, response) => response.end('ok'));
});
afterAll(() => sample.stop());

/** The API of the sample, with what a cluster would do for an attacker who pushes to their own repository. */
class LocalVictim extends Victim {
  constructor() {
    super(installation, () => Promise.resolve(''), 'moorage-system');
  }

  override async ask(path: string | URL, options: AskOptions = {}): Promise<Answer> {
    const { method = 'GET', headers = {}, json, text } = options;
    const body = json === undefined ? text : JSON.stringify(json);
    const response = await sample.request(String(path), {
      method,
      headers: { ...headers, ...(json === undefined ? {} : { 'content-type': 'application/json' }) },
      ...(body === undefined ? {} : { body }),
    });
    const cookies = response.headers.getSetCookie();
    const answered = {
      ...Object.fromEntries(response.headers),
      ...(cookies.length === 0 ? {} : { 'set-cookie': cookies }),
    };
    return { status: response.status, headers: answered, body: await response.text() };
  }

  override async register(slug: string, files: Readonly<Record<string, string>>): Promise<string> {
    await this.host(slug, files);
    return slug;
  }

  override async host(slug: string, files: Readonly<Record<string, string>>): Promise<void> {
    const isHosted = sample.store.list(namespace).some(({ metadata }) => metadata.name === slug);
    if (!isHosted) await sample.host(slug, (_request, response) => response.end('ok'));
    const app = findApp(slug);
    const commit = 'd'.repeat(40);
    putApp({
      ...app,
      status: {
        ...app.status,
        source: { commit, reference: 'refs/heads/main' },
        authorKeys: findAuthorKeyHashes(files['.moorage-owner'] ?? ''),
      },
    });
  }

  override liveApp(): Promise<HostedApp> {
    return this.app('hello');
  }

  override app(slug: string): Promise<HostedApp> {
    return Promise.resolve(hostedApp.parse(JSON.parse(JSON.stringify(findApp(slug)))));
  }
}

/** Accepts everything, shows all that it was ever sent, and protects nothing. */
class OpenVictim extends Victim {
  readonly #sent: string[] = [];

  constructor() {
    super(installation, () => Promise.resolve(''), 'moorage-system');
  }

  override ask(path: string | URL, options: AskOptions = {}): Promise<Answer> {
    const { method = 'GET', headers = {}, json, text = '' } = options;
    this.#sent.push(decodeURIComponent(String(path).replaceAll('%00', '')), JSON.stringify(json ?? ''), text);
    this.#sent.push(...new URLSearchParams(text).values(), ...Object.values(headers));
    const isForm = method === 'POST' && String(path).includes('/manage');
    const status = isForm ? 303 : String(path).endsWith('/push-hook') ? 202 : 200;
    return Promise.resolve({ status, headers: { 'set-cookie': 'session=1' }, body: this.#show(String(path), headers) });
  }

  #show(path: string, { accept }: Readonly<Record<string, string>>): string {
    const all = [...this.#sent, '</textarea><script>alert(2)</script>', '<script>alert(1)</script>'].join('\n');
    if (path.includes('/manage')) return `name="token" value="t" &lt;script ${all}`;
    if (accept === 'text/plain') return `fake fake \u001b ${all}`;
    if (accept === 'text/event-stream') return `event: end\nevent: end\n${all}`;
    return JSON.stringify({
      ...{ key: 'mak-x', line: 'line', secret: 'secret', polled: true, sent: this.#sent },
      entries: this.#sent.map(() => ({ action: 'restart' })),
      control: { deleteAfter: 'now' },
      records: { txt: { name: 'x', value: 'x' }, cname: { name: 'x', value: 'x' } },
    });
  }

  override register(slug: string): Promise<string> {
    return Promise.resolve(slug);
  }

  override host(): Promise<void> {
    return Promise.resolve();
  }

  override liveApp(): Promise<HostedApp> {
    return this.app();
  }

  override app(): Promise<HostedApp> {
    const app = findApp('hello');
    // Each event is built.
    const source = { commit: createHash('sha1').update(this.#sent.join('')).digest('hex') };
    return Promise.resolve(hostedApp.parse({ ...structuredClone(app), status: { ...app.status, source } }));
  }
}

test('at least 40 attacks on authors have names of their own', () => {
  const names = attacks.map(({ name }) => name);
  assert.ok(names.length >= 40, String(names.length));
  assert.equal(new Set(names).size, names.length);
});

test('each of these attacks holds', async () => {
  const victim = new LocalVictim();
  const results: string[] = [];
  for (const attack of local) {
    const { result, evidence } = await attempt(attack, victim);
    if (result !== 'held') results.push(`${result}: ${attack.name}: ${evidence}`);
  }
  expect(results).toEqual([]);
}, 240_000);

test.each(attacks)('against a server that accepts everything, this is open: $name', async (attack) => {
  const { result, evidence } = await attempt(attack, new OpenVictim());
  assert.equal(result, 'open', evidence);
});
