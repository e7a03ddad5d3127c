// The path and query of a resource on the API server.
import type { Resource } from '../object.ts';

/** Query parameters; those that are undefined or empty are left out. */
type Query = Record<string, string | number | boolean | undefined>;

/** Path of a resource, or of one object in it. */
export function pathOf(
  resource: Resource,
  where: { namespace?: string | undefined; name?: string | undefined; subresource?: string | undefined } = {},
  query: Query = {},
): string {
  const root = resource.group === '' ? `/api/${resource.version}` : `/apis/${resource.group}/${resource.version}`;
  const scope = resource.namespaced && where.namespace !== undefined ? ['namespaces', where.namespace] : [];
  const parts = [...scope, resource.plural, where.name, where.subresource].filter((part) => part !== undefined);
  const search = new URLSearchParams();
  for (const [name, value] of Object.entries(query))
    if (value !== undefined && value !== '') search.set(name, String(value));
  const path = [root, ...parts.map(encodeURIComponent)].join('/');
  return search.size === 0 ? path : `${path}?${search.toString()}`;
}
