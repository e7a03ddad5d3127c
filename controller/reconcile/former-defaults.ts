// Removes from a stored HostedApp the defaults that the CRD of earlier versions filled in: today every stored field counts
// as set by someone, and wins over the author's moorage.yaml.
import { isDeepStrictEqual } from 'node:util';
import { hasEveryDefault, layeredFields } from '../../crds/effective-settings.ts';
import { spec as specSchema } from '../../crds/hosted-app.ts';
import type { Client } from '../../lib/kubernetes/index.ts';
import { hostedApps, type HostedAppObject } from '../objects/kinds.ts';

/** Where `kubectl apply` without --server-side keeps what was applied. */
const lastApplied = 'kubectl.kubernetes.io/last-applied-configuration';

/**
 * Creates the function that removes the former defaults of an app and returns the updated app. An app has them if it has
 * every such field. A value that was applied stays: `kubectl apply` records what its user wrote. After a create or a
 * patch, a default looks the same as a chosen value, and such a value had no effect until now either.
 */
export function createDefaultsRemover(
  client: Client,
): (app: HostedAppObject, signal: AbortSignal) => Promise<HostedAppObject> {
  /** With a CRD that still has the defaults, the API server would fill them in again after each write. */
  const tried = new Set<string>();
  return async (app, signal) => {
    if (!hasEveryDefault(app.spec) || tried.has(app.metadata.uid)) return app;
    // The cache keeps no managed fields.
    const fullApp = await client.get(hostedApps, app.metadata, { signal });
    if (fullApp === undefined || fullApp.metadata.uid !== app.metadata.uid) return app;
    const removed = findFormerDefaults(fullApp);
    if (removed.length === 0) {
      tried.add(app.metadata.uid);
      return app;
    }
    const { uid, resourceVersion } = fullApp.metadata;
    const spec = removed.reduce<Fields>((patch, path) => setNull(patch, path), {});
    // The version makes it fail (409, retried) if someone has just set one of them.
    const patched = await client.patch(
      hostedApps,
      app.metadata,
      { metadata: { uid, resourceVersion }, spec },
      { type: 'application/merge-patch+json', signal },
    );
    tried.add(uid);
    return patched;
  };
}

type Fields = Readonly<Record<string, unknown>>;

/** Fields that have their default and were not applied. */
export function findFormerDefaults({ spec, metadata }: HostedAppObject): (readonly string[])[] {
  const defaults = specSchema.parse({ source: spec.source });
  const applied = [
    parseApplied(metadata.annotations?.[lastApplied]),
    ...(metadata.managedFields ?? []).flatMap(({ operation, fieldsV1 }) =>
      operation === 'Apply' ? [(fieldsV1 as Fields | undefined)?.['f:spec']] : [],
    ),
  ];
  const isApplied = (path: readonly string[]): boolean =>
    applied.some(
      (fields) =>
        find(fields, path) !== undefined ||
        find(
          fields,
          path.map((name) => `f:${name}`),
        ) !== undefined,
    );
  return layeredFields.filter((path) => isDeepStrictEqual(find(spec, path), find(defaults, path)) && !isApplied(path));
}

function parseApplied(text: string | undefined): unknown {
  try {
    return text === undefined ? undefined : find(JSON.parse(text), ['spec']);
  } catch {
    return undefined;
  }
}

function find(fields: unknown, path: readonly string[]): unknown {
  return path.reduce<unknown>(
    (current, name) => (typeof current === 'object' && current !== null ? (current as Fields)[name] : undefined),
    fields,
  );
}

function setNull(patch: Fields, [name = '', ...rest]: readonly string[]): Fields {
  return { ...patch, [name]: rest.length === 0 ? null : setNull((patch[name] ?? {}) as Fields, rest) };
}
