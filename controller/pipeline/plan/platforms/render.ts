// Reads render.yaml: the first web service, its databases, and the variables that refer to them.
import { z } from 'zod';
import { askedSecret } from '../../../../crds/values.ts';
import { omitUndefined } from '../../../../lib/values.ts';
import type { Tree } from '../../tree.ts';
import { type Declaration, type DeclaredVariable, parseYaml } from './declaration.ts';

const variable = z.looseObject({
  key: z.string(),
  value: z.union([z.string(), z.number(), z.boolean()]).transform(String).optional(),
  generateValue: z.boolean().optional(),
  fromDatabase: z.looseObject({ property: z.string() }).optional(),
  fromService: z.looseObject({ type: z.string().optional(), property: z.string().optional() }).optional(),
});
const service = z.looseObject({
  type: z.string(),
  startCommand: z.string().optional().catch(undefined),
  preDeployCommand: z.string().optional().catch(undefined),
  staticPublishPath: z.string().optional().catch(undefined),
  healthCheckPath: z.string().optional().catch(undefined),
  routes: z
    .array(z.looseObject({ type: z.string().optional(), source: z.string().optional() }))
    .optional()
    .catch(undefined),
  disk: z.looseObject({ mountPath: z.string() }).optional().catch(undefined),
  envVars: z.array(z.unknown()).max(100).optional().catch(undefined),
});
const blueprint = z.looseObject({
  services: z.array(z.unknown()).max(50),
  databases: z.array(z.unknown()).max(20).optional().catch(undefined),
});

/** Database properties, as placeholders name them. */
const properties: Readonly<Record<string, string>> = {
  connectionString: 'url',
  connectionPoolString: 'url',
  host: 'host',
  port: 'port',
  user: 'user',
  password: 'password',
  database: 'database',
};

export function readRender(tree: Tree): Declaration | undefined {
  const file = ['render.yaml', 'render.yml'].find((name) => tree.has(name));
  const parsed = blueprint.safeParse(parseYaml(file === undefined ? undefined : tree.readFile(file)));
  if (file === undefined || !parsed.success) return undefined;
  const services = parsed.data.services.flatMap((each) => service.safeParse(each).data ?? []);
  const web = services.find(({ type }) => type === 'web') ?? services.find(({ type }) => type === 'static_site');
  if (web === undefined) return undefined;
  return {
    file,
    ...toStart(web),
    env: (web.envVars ?? []).flatMap((each) => toVariables(variable.safeParse(each).data)),
    volumes: web.disk === undefined ? [] : [{ name: 'data', path: web.disk.mountPath }],
    services: toServices(parsed.data.databases ?? [], services),
  };
}

function toServices(
  databases: readonly unknown[],
  services: readonly { readonly type: string }[],
): NonNullable<Declaration['services']> {
  return [
    ...(databases.length > 0 ? [{ name: 'db', type: 'postgres' } as const] : []),
    ...(services.some(({ type }) => ofRedis.test(type)) ? [{ name: 'redis', type: 'redis' } as const] : []),
  ];
}

const ofRedis = /^(?:redis|keyvalue)$/;

function toStart(web: z.infer<typeof service>): Partial<Declaration> {
  const { startCommand: start, preDeployCommand: release, staticPublishPath: folder, healthCheckPath } = web;
  const fallback = (web.routes ?? []).some((route) => route.type === 'rewrite' && route.source === '/*');
  return omitUndefined({
    start,
    release,
    healthPath: healthCheckPath?.startsWith('/') === true ? healthCheckPath : undefined,
    site: folder === undefined ? undefined : { folder, fallback },
  });
}

function toVariables(entries: z.infer<typeof variable> | undefined): DeclaredVariable[] {
  if (entries === undefined) return [];
  const { key: name, value, generateValue } = entries;
  if (generateValue === true) return [{ name, value: askedSecret }];
  const resolvedValue =
    value ?? toPlaceholder('db', entries.fromDatabase) ?? toPlaceholder('redis', selectRedis(entries.fromService));
  return resolvedValue === undefined || resolvedValue === '' ? [] : [{ name, value: resolvedValue }];
}

type Source = { readonly type?: string | undefined; readonly property?: string | undefined } | undefined;

function selectRedis(source: Source): Source {
  return ofRedis.test(source?.type ?? '') ? source : undefined;
}

function toPlaceholder(service: string, source: Source): string | undefined {
  const part = properties[source?.property ?? ''];
  return part === undefined ? undefined : `\${{services.${service}.${part}}}`;
}
