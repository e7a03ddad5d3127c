// Which backing service an image of a compose file is.
import type { ServiceType } from '../../../../../crds/backing-services.ts';

export interface KnownImage {
  readonly type: ServiceType;
  readonly version?: string;
}

/** By the path of the image, without registry and tag. */
const types: readonly (readonly [RegExp, ServiceType])[] = [
  [/(?:^|\/)(?:postgres|postgresql|pgvector|postgis|timescaledb|timescaledb-ha|pgvecto-rs)$/, 'postgres'],
  [/(?:^|\/)(?:redis|valkey|redis-stack|redis-stack-server|keydb|dragonfly)$/, 'redis'],
  [/(?:^|\/)(?:mongo|mongodb|mongodb-community-server)$/, 'mongo'],
  [/(?:^|\/)(?:mysql|mariadb|mysql-server)$/, 'mysql'],
  [/(?:^|\/)qdrant$/, 'qdrant'],
  [/(?:^|\/)(?:chroma|chromadb)$/, 'chroma'],
  [/(?:^|\/)minio$/, 'minio'],
  [/(?:^|\/)meilisearch$/, 'meilisearch'],
];

/** The type and version of an image; undefined when it is none of a backing service. */
export function knownImage(image: string): KnownImage | undefined {
  const [path = '', digest] = image.split('@', 2);
  const [, name = '', tag = ''] = /^(.{1,400}?)(?::([^:/]{1,128}))?$/.exec(path) ?? [];
  const type = types.find(([pattern]) => pattern.test(name))?.[1];
  if (type === undefined) return undefined;
  const version = digest === undefined ? versionOf(tag) : undefined;
  return version === undefined ? { type } : { type, version };
}

/** 16 of pg16 and 0.8.0-pg16, 1.2.3 of v1.2.3. */
function versionOf(tag: string): string | undefined {
  return /(?:^|-)pg([0-9]{1,3})/.exec(tag)?.[1] ?? /^v?([0-9]{1,6}(?:\.[0-9]{1,6}){0,3})/.exec(tag)?.[1];
}

/** Servers that stand before others, and are the platform's own work here. */
export function isProxy({ name, image = '' }: { readonly name: string; readonly image?: string | undefined }): boolean {
  const path = image.split('@')[0]?.replace(/:[^:/]{0,128}$/, '') ?? '';
  return (
    /(?:^|\/)(?:nginx|nginx-unprivileged|traefik|caddy|haproxy|envoy|nginx-proxy|nginx-proxy-manager|cloudflared|swag|certbot|acme-companion)$/.test(
      path,
    ) || /^(?:nginx|traefik|caddy|haproxy|proxy|reverse-?proxy|certbot|tunnel|cloudflared)$/i.test(name)
  );
}

/** What only a developer starts: tests, tools, pages to look into a database. */
export function isAside({ name, image = '' }: { readonly name: string; readonly image?: string | undefined }): boolean {
  return (
    /(?:^|[-_])(?:tests?|mock(?:ed)?|e2e|cypress|playwright|lint|docs?|storybook|dev|devcontainer|debug|mailhog|mailpit|mailcatcher|adminer|pgadmin|phpmyadmin|studio|seed|backup|watchtower|prometheus|grafana|jaeger)(?:$|[-_0-9])/i.test(
      name,
    ) ||
    /(?:adminer|pgadmin4?|phpmyadmin|mongo-express|redis-commander|redisinsight|mailhog|mailpit|maildev|watchtower|dbgate)(?::|@|$)/i.test(
      image,
    )
  );
}

/** Images that only bring a language: a developer's folder is mounted into them. */
export function isLanguage(image: string): boolean {
  return /^(?:docker\.io\/)?(?:library\/)?(?:node|python|golang|ruby|php|openjdk|eclipse-temurin|maven|gradle|rust|elixir|oven\/bun|denoland\/deno|ubuntu|debian|alpine|busybox|composer)(?::|@|$)/.test(
    image,
  );
}
