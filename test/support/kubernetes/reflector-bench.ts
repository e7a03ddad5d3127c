// A reflector of things on a server made for it, for the reflector's tests.
import type { TestContext } from 'vitest';
import {
  createReflector,
  defineResource,
  type Change,
  type Client,
  type KubeObject,
  type Reflector,
  type ReflectorOptions,
} from '../../../lib/kubernetes/index.ts';
import { FakeApi } from './fake-api.ts';
import { waitUntil } from './until.ts';

/** Where the things are on the server. */
export const KIND = 'apis/example.dev/v1/things';
/** An object to put on the server. */
export const things = defineResource<KubeObject & { size?: number }>({
  group: 'example.dev',
  version: 'v1',
  kind: 'Thing',
  plural: 'things',
  namespaced: true,
});

/** A reflector at work on a server, and what came of it. */
export interface Bench {
  api: FakeApi;
  reflector: Reflector<KubeObject & { size?: number }>;
  changes: string[];
  /** Resolves when the cache is what the server has. */
  same: () => Promise<void>;
  lists: () => number;
  watches: () => number;
  /** Watches that the reflector knows to be open, or to have been. */
  opened: () => number;
  end: () => Promise<void>;
  stop: () => Promise<void>;
}

function describe({ type, object }: Change<KubeObject>): string {
  return `${type} ${object.metadata.name} ${object.metadata.uid.slice(0, 8)}`;
}

/** The uid and version of each object: equal when nothing was missed. */
function versions(objects: readonly KubeObject[]): string[] {
  return objects.map(({ metadata }) => `${metadata.name} ${metadata.uid} ${metadata.resourceVersion}`).toSorted();
}

/** Starts both. */
export async function bench(
  prepare: (api: FakeApi) => void = () => undefined,
  options: Partial<ReflectorOptions<KubeObject>> = {},
): Promise<Bench> {
  const api = new FakeApi();
  const client = await api.start();
  prepare(api);
  let opened = 0;
  const counting: Pick<Client, 'list' | 'watch'> = {
    list: client.list.bind(client),
    watch: (resource, wanted) =>
      client.watch(resource, {
        ...wanted,
        onOpen: () => {
          wanted.onOpen?.();
          opened += 1;
        },
      }),
  };
  const reflector = createReflector({ client: counting, resource: things, backoffMs: [2, 10], ...options });
  const changes: string[] = [];
  reflector.store.subscribe((change) => changes.push(describe(change)));
  const ending = new AbortController();
  const running = reflector.run(ending.signal);
  const end = async (): Promise<void> => {
    ending.abort();
    await running;
    client.close();
  };
  return {
    api,
    reflector,
    changes,
    same: () =>
      waitUntil(() => JSON.stringify(versions(reflector.store.list())) === JSON.stringify(versions(api.objects(KIND)))),
    lists: () => api.count('GET', (url) => !url.searchParams.has('watch')),
    watches: () => api.count('GET', (url) => url.searchParams.has('watch')),
    opened: () => opened,
    end,
    async stop() {
      await end();
      await api.stop();
    },
  };
}

/** Starts both, waits for the cache and the first watch, and ends them after the test. */
export async function startReflector(
  t: TestContext,
  prepare?: (api: FakeApi) => void,
  options?: Partial<ReflectorOptions<KubeObject>>,
): Promise<Bench> {
  const made = await bench(prepare, options);
  t.onTestFinished(() => made.stop());
  await made.reflector.store.waitUntilSynced();
  await waitUntil(() => made.api.watching === 1);
  return made;
}

/** An object to put on the server. */
export const thing = (name: string, size = 1): { metadata: { name: string; namespace: string }; size: number } => ({
  metadata: { name, namespace: 'apps' },
  size,
});
