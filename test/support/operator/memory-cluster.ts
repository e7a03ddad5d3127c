// A cluster of HostedApps in memory, for tests with many histories: it judges them as the API server would, and a deleted app
// stays until its finalizer is gone.
import { hostedApp, type StoredSpec } from '../../../crds/hosted-app.ts';
import { labels } from '../../../crds/names.ts';
import { ApiError, type Client, type Manifest } from '../../../lib/kubernetes/index.ts';
import type { HostedAppObject } from '../../../controller/objects/kinds.ts';

export type MemoryClient = Pick<Client, 'listAll' | 'create' | 'patch' | 'delete'>;

export class MemoryCluster {
  readonly #apps = new Map<string, HostedAppObject>();
  #version = 0;
  /** Called before each write; what it throws is what the writer gets. */
  beforeWrite: () => void = () => undefined;
  /** Called after each write. */
  afterWrite: () => void = () => undefined;

  readonly client: MemoryClient = {
    listAll: ((_resource, { labelSelector = '' } = {}) => this.#list(labelSelector)) as Client['listAll'],
    create: ((_resource, manifest) => this.#write(() => this.put(manifest))) as Client['create'],
    patch: ((_resource, { name }, change) => this.#write(() => this.#change(name, change))) as Client['patch'],
    delete: (_resource, { name }, { uid } = {}) =>
      this.#write(() => {
        const app = this.#apps.get(name);
        if (app === undefined) return false;
        if (uid !== undefined && uid !== app.metadata.uid) throw conflict('UID');
        this.beginEnd(name);
        return true;
      }),
  };

  list(): HostedAppObject[] {
    return [...this.#apps.values()];
  }

  get(name: string): HostedAppObject | undefined {
    return this.#apps.get(name);
  }

  listPreviews(app: string): HostedAppObject[] {
    return this.list().filter(({ metadata }) => metadata.labels?.[labels.app] === app);
  }

  /** Creates an app. @throws ApiError as the API server would */
  put(manifest: Manifest & { readonly status?: unknown }): HostedAppObject {
    if (this.#apps.has(manifest.metadata.name)) throw new ApiError(409, 'AlreadyExists', 'already exists');
    this.#version += 1;
    const metadata = {
      ...{ uid: `uid-${this.#version}`, creationTimestamp: '2026-11-21T12:00:00Z', generation: 1 },
      ...{ ...manifest.metadata, resourceVersion: String(this.#version) },
    };
    return this.#store({ ...structuredClone(manifest), metadata } as unknown as HostedAppObject);
  }

  /** Changes an app as somebody else would. */
  set(name: string, change: (app: HostedAppObject) => HostedAppObject): void {
    const app = this.#apps.get(name);
    if (app !== undefined) this.#store(this.#renew(change(app)));
  }

  /** Deletes an app, which stays until {@link end}. */
  beginEnd(name: string): void {
    this.set(name, (app) => ({
      ...app,
      metadata: { ...app.metadata, deletionTimestamp: app.metadata.deletionTimestamp ?? '2026-11-21T13:00:00Z' },
    }));
  }

  end(name: string): void {
    if (this.#apps.get(name)?.metadata.deletionTimestamp !== undefined) this.#apps.delete(name);
  }

  // eslint-disable-next-line @typescript-eslint/require-await -- the client's is asynchronous
  async *#list(labelSelector: string): AsyncGenerator<HostedAppObject, void, undefined> {
    const [label = '', value] = labelSelector.split('=');
    yield* this.list().filter(({ metadata }) => metadata.labels?.[label] === value);
  }

  #change(name: string, change: unknown): HostedAppObject {
    const { metadata, spec } = change as { metadata: { uid: string; resourceVersion: string }; spec: StoredSpec };
    const app = this.#apps.get(name);
    if (app === undefined) throw new ApiError(404, 'NotFound', 'not found');
    if (app.metadata.uid !== metadata.uid || app.metadata.resourceVersion !== metadata.resourceVersion)
      throw conflict('version');
    return this.#store(this.#renew({ ...app, spec: { ...app.spec, ...structuredClone(spec) } }));
  }

  #renew(app: HostedAppObject): HostedAppObject {
    this.#version += 1;
    return { ...app, metadata: { ...app.metadata, resourceVersion: String(this.#version) } };
  }

  #store(app: HostedAppObject): HostedAppObject {
    const before = this.#apps.get(app.metadata.name);
    const judged = before?.spec === app.spec ? undefined : hostedApp.safeParse(app);
    if (judged?.success === false) throw new ApiError(422, 'Invalid', judged.error.message);
    this.#apps.set(app.metadata.name, app);
    return app;
  }

  async #write<Result>(write: () => Result): Promise<Result> {
    await Promise.resolve();
    this.beforeWrite();
    const result = write();
    this.afterWrite();
    return result;
  }
}

function conflict(what: string): ApiError {
  return new ApiError(409, 'Conflict', `Precondition failed: ${what}`);
}
