// What the API writes to the cluster for an author: the section `control` of a HostedApp, the annotations that request a poll or
// a build, and Secrets with values.
import { type Control, control as controlSchema } from '../../../crds/control.ts';
import {
  ApiError,
  type Client,
  defineResource,
  isApiStatus,
  type KubeObject,
  type Manifest,
} from '../../../lib/kubernetes/index.ts';
import type { annotations } from '../../../crds/names.ts';
import { Problem } from '../../../lib/problem.ts';
import { type App, type AppIndex, hostedApps } from '../hosted-apps.ts';
import { beingRemoved } from '../problems.ts';

/** What to write; a field that is undefined is removed. */
export type ControlChange = { readonly [Field in keyof Control]?: Control[Field] | undefined };

/** Annotations that request something of the operator. The admission policy allows the API these two. */
export type RequestAnnotations = Readonly<
  Partial<Record<typeof annotations.poll | typeof annotations.rebuild, string>>
>;

/**
 * Changes the control of an app by what it is now, and returns the app as it was stored. `request` returns annotations that
 * are written together with it.
 */
export type WriteControl = (
  app: App,
  change: (control: Control) => ControlChange,
  request?: (stored: App) => RequestAnnotations,
) => Promise<App>;

export interface ControlWriterOptions {
  readonly client: Client;
  readonly apps: Pick<AppIndex, 'waitForApp'>;
}

export const secrets = defineResource<KubeObject>({
  group: '',
  version: 'v1',
  kind: 'Secret',
  plural: 'secrets',
  namespaced: true,
});

const fieldManager = 'moorage-api';
/** Status writes of the operator count as changes, too. */
const attempts = 10;
/** A request right after a change must see it. */
const seenWithinMs = 2_000;

/**
 * Creates the function that changes the control of an app. It reads the stored app first, and starts again if another
 * replica was faster.
 *
 * @throws Problem (being-removed) if the app is gone, ApiError if the cluster rejects the change
 */
export function createControlWriter({ client, apps }: ControlWriterOptions): WriteControl {
  return async (app, change, request) => {
    const { name, namespace, uid } = app.metadata;
    for (let attempt = 1; ; attempt += 1) {
      const stored = await client.get(hostedApps, { name, namespace });
      if (stored === undefined || stored.metadata.uid !== uid || stored.metadata.deletionTimestamp !== undefined)
        throw new Problem(beingRemoved, `${name} is being deleted, and cannot be changed any more.`);
      const patch = buildPatch(stored, change(controlSchema.parse(stored.spec.control ?? {})), request?.(stored));
      if (patch === undefined) return stored;
      try {
        const patched = await client.patch(hostedApps, { name, namespace }, patch, {
          type: 'application/merge-patch+json',
          fieldManager,
        });
        await apps.waitForApp(patched, seenWithinMs);
        return patched;
      } catch (error) {
        if (!isApiStatus(error, 409) || attempt === attempts) throw error;
      }
    }
  };
}

/**
 * Creates the function that creates a Secret. The API has no right to read, change or delete one.
 *
 * @throws ApiError of status 409 if its name is taken, and Error without what the cluster replied otherwise
 */
export function createSecretCreator(client: Client): (manifest: Manifest) => Promise<void> {
  return async (manifest) => {
    try {
      await client.create(secrets, manifest, { fieldManager });
    } catch (error) {
      if (!(error instanceof ApiError) || error.status === 0 || error.status === 409) throw error;
      // A reply may quote what was sent, and errors are logged.
      throw new ApiError(
        error.status,
        error.reason,
        'The cluster has refused to store a secret.',
        error.retryAfterSeconds,
      );
    }
  };
}

/** The version makes it fail (409) if someone else has just changed the app. Undefined if there is nothing to change. */
function buildPatch({ metadata }: App, wanted: ControlChange, requested: RequestAnnotations = {}): object | undefined {
  const control = Object.fromEntries(Object.entries(wanted).map(([field, value]) => [field, value ?? null]));
  const isControlKept = Object.keys(control).length === 0;
  if (isControlKept && Object.keys(requested).length === 0) return undefined;
  const { uid, resourceVersion } = metadata;
  return {
    metadata: { uid, resourceVersion, annotations: requested },
    ...(isControlKept ? {} : { spec: { control } }),
  };
}
