// Empties an API server for the next file of tests: removes from etcd what was not there when it had just started. The
// API server follows, since its caches watch etcd; without controllers nothing else would remove what a namespace holds.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Agent, request } from 'undici';
import { z } from 'zod';
import { waitFor } from '../../../localnode/shell.ts';
import type { OwnApiServer } from './api-server.ts';

export interface Baseline {
  /** Removes every object that was made since. Resolves when the API server no longer serves any of them. */
  restore(): Promise<void>;
}

const prefix = '/registry/';
/** What the API server itself writes from time to time. */
const isItsOwn = (key: string): boolean => key.startsWith('/registry/leases/kube-system/');
/** etcd's limit of operations in one transaction is 128. */
const perTransaction = 100;

const range = z.object({ kvs: z.array(z.object({ key: z.base64() })).default([]) });
const groupList = z.object({ groups: z.array(z.object({ name: z.string() })) });
const nameList = z.object({ items: z.array(z.object({ metadata: z.object({ name: z.string() }) })) });

export async function takeBaseline(server: OwnApiServer): Promise<Baseline> {
  const etcd = createEtcdClient(server);
  const listGroups = async (): Promise<string[]> =>
    groupList.parse(JSON.parse(await server.kubectl('get', '--raw', '/apis'))).groups.map(({ name }) => name);
  const listNamespaces = async (): Promise<string[]> => {
    // From the cache of the API server, which is what must have caught up.
    const text = await server.kubectl('get', '--raw', '/api/v1/namespaces?resourceVersion=0');
    return nameList.parse(JSON.parse(text)).items.map(({ metadata }) => metadata.name);
  };
  await waitFor('the namespaces of the system', async () => (await listNamespaces()).length >= 4, { seconds: 60 });
  const keys = new Set(await etcd.listKeys());
  const names = new Set([...(await listGroups()), ...(await listNamespaces())]);
  return {
    async restore() {
      const added = (await etcd.listKeys()).filter((key) => !keys.has(key) && !isItsOwn(key));
      // Types go after their objects.
      const isType = (key: string): boolean => /^\/registry\/api(extensions|registration)\.k8s\.io\//.test(key);
      await etcd.remove(added.filter((key) => !isType(key)));
      await etcd.remove(added.filter(isType));
      await waitFor(
        'an empty API server',
        async () => {
          if ((await etcd.listKeys()).some((key) => !keys.has(key) && !isItsOwn(key))) return false;
          return [...(await listGroups()), ...(await listNamespaces())].every((name) => names.has(name));
        },
        { seconds: 20, every: 100 },
      );
    },
  };
}

interface EtcdClient {
  listKeys(): Promise<string[]>;
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
      return range.parse(answer).kvs.map(({ key }) => Buffer.from(key, 'base64').toString());
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
