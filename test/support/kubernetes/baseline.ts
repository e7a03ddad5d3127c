// Empties an API server for the next file of tests: removes from etcd what was not there when it had just started. The
// API server follows, since its caches watch etcd; without controllers nothing else would remove what a namespace holds.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Agent, request } from 'undici';
import { z } from 'zod';
import { waitFor } from '../../../localnode/shell.ts';
import { createClientAs, type OwnApiServer } from './api-server.ts';

export interface Baseline {
  /** Removes every object that was made since. Resolves when the API server no longer serves any of them. */
  restore(): Promise<void>;
  /** Whether every object is as it was, except for those that `under` has too. */
  isIntact(under: Baseline): Promise<boolean>;
  has(key: string): boolean;
}

const prefix = '/registry/';
/** What the API server itself writes from time to time. */
const isItsOwn = (key: string): boolean => key.startsWith('/registry/leases/kube-system/');
/** etcd's limit of operations in one transaction is 128. */
const perTransaction = 100;

const range = z.object({ kvs: z.array(z.object({ key: z.base64(), mod_revision: z.string() })).default([]) });
const groupList = z.object({ groups: z.array(z.object({ name: z.string() })) });
const nameList = z.object({ items: z.array(z.object({ metadata: z.object({ name: z.string() }) })) });

/** `isSettling`: types were added, which the API server registers a little later. */
export async function takeBaseline(server: OwnApiServer, isSettling = false): Promise<Baseline> {
  const etcd = createEtcdClient(server);
  const client = await createClientAs(server);
  const listGroups = async (): Promise<string[]> =>
    groupList.parse(await client.request({ method: 'GET', path: '/apis' })).groups.map(({ name }) => name);
  const listNamespaces = async (): Promise<string[]> => {
    // From the cache of the API server, which is what must have caught up.
    const answer = await client.request({ method: 'GET', path: '/api/v1/namespaces?resourceVersion=0' });
    return nameList.parse(answer).items.map(({ metadata }) => metadata.name);
  };
  await waitFor('the namespaces of the system', async () => (await listNamespaces()).length >= 4, { seconds: 60 });
  let keys = await etcd.listKeys();
  for (let isSettled = !isSettling; !isSettled;) {
    const before = keys;
    await sleep(1_000);
    keys = await etcd.listKeys();
    isSettled = keys.size === before.size && [...keys].every(([key, at]) => isItsOwn(key) || before.get(key) === at);
  }
  const names = new Set([...(await listGroups()), ...(await listNamespaces())]);
  return {
    has: (key) => keys.has(key),
    async isIntact(under) {
      const now = await etcd.listKeys();
      return [...keys].every(([key, revision]) => under.has(key) || isItsOwn(key) || now.get(key) === revision);
    },
    async restore() {
      const listAdded = async (): Promise<string[]> =>
        [...(await etcd.listKeys()).keys()].filter((key) => !keys.has(key) && !isItsOwn(key));
      const added = await listAdded();
      // Types go after their objects.
      const isType = (key: string): boolean => /^\/registry\/api(extensions|registration)\.k8s\.io\//.test(key);
      await etcd.remove(added.filter((key) => !isType(key)));
      await etcd.remove(added.filter(isType));
      await waitFor(
        'an empty API server',
        async () => {
          if ((await listAdded()).length > 0) return false;
          return [...(await listGroups()), ...(await listNamespaces())].every((name) => names.has(name));
        },
        { seconds: 20, every: 100 },
      );
    },
  };
}

interface EtcdClient {
  /** Revision at which each key was last written. */
  listKeys(): Promise<Map<string, string>>;
  remove(keys: readonly string[]): Promise<void>;
}

/** Over etcd's JSON gateway, as its client whose certificate the API server has. */
function createEtcdClient({ folder, etcdPort }: Pick<OwnApiServer, 'folder' | 'etcdPort'>): EtcdClient {
  const read = (name: string): string => readFileSync(join(folder, 'certificates', name), 'utf8');
  const tls = { ca: read('etcd-ca.crt'), cert: read('etcd-client.crt'), key: read('etcd-client.key') };
  const encode = (text: string): string => Buffer.from(text).toString('base64');
  const dispatcher = new Agent({ connect: tls });
  const post = async (path: string, body: object): Promise<unknown> => {
    const options = { method: 'POST', dispatcher, body: JSON.stringify(body) } as const;
    const response = await request(`https://127.0.0.1:${etcdPort}/v3/kv/${path}`, options);
    const text = await response.body.text();
    if (response.statusCode !== 200) throw new Error(`etcd answered ${response.statusCode}: ${text}`);
    return JSON.parse(text);
  };
  return {
    async listKeys() {
      const end = `${prefix.slice(0, -1)}0`;
      const answer = await post('range', { key: encode(prefix), range_end: encode(end), keys_only: true });
      const { kvs } = range.parse(answer);
      return new Map(kvs.map(({ key, mod_revision: revision }) => [Buffer.from(key, 'base64').toString(), revision]));
    },
    async remove(keys) {
      for (let from = 0; from < keys.length; from += perTransaction) {
        const success = keys
          .slice(from, from + perTransaction)
          .map((key) => ({ request_delete_range: { key: encode(key) } }));
        await post('txn', { success });
      }
    },
  };
}
