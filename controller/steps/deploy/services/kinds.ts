// The types of backing service: how each is run, and which variables an app gets.
import type { ServiceType } from '../../../../crds/backing-services.ts';
import type { Login, LoginRules } from './connections.ts';

type Values = Readonly<Record<string, string>>;

export interface ServiceKind {
  /** Variables use the first one. */
  readonly ports: readonly [number, ...number[]];
  /** User and group of the process, and of its volume. */
  readonly user: number;
  /** Where its volume is mounted. */
  readonly mount: string;
  /** Temporary folders that it writes to; everything else is read-only. */
  readonly scratch: readonly string[];
  /** Default memory limit. */
  readonly memory: string;
  readonly login: LoginRules;
  /** Environment of the service, in addition to its settings. */
  readonly environment: (login: Login) => Values;
  /** Replaces the arguments of the image. */
  readonly args?: (login: Login, memoryBytes: bigint) => readonly string[];
  readonly url: (login: Login) => string;
  /** Variables of the app. */
  readonly variables: (login: Login) => Values;
}

const postgres: ServiceKind = {
  ports: [5432],
  user: 999,
  mount: '/var/lib/postgresql/data',
  scratch: ['/tmp', '/var/run/postgresql'],
  memory: '256Mi',
  login: {
    user: { names: ['POSTGRES_USER'], usual: 'app' },
    password: { names: ['POSTGRES_PASSWORD'], mayBeEmpty: false },
    database: { names: ['POSTGRES_DB'] },
  },
  environment: ({ user, password, database }) => ({
    POSTGRES_USER: user,
    POSTGRES_PASSWORD: password,
    POSTGRES_DB: database,
    // A folder below the mount, since the mount is not empty on every file system.
    PGDATA: '/var/lib/postgresql/data/pgdata',
  }),
  url: ({ host, credentials, database }) => `postgresql://${credentials}${host}:5432/${database}`,
  variables: (login) => ({
    DATABASE_URL: postgres.url(login),
    POSTGRES_URL: postgres.url(login),
    POSTGRES_HOST: login.host,
    POSTGRES_PORT: '5432',
    POSTGRES_USER: login.user,
    POSTGRES_PASSWORD: login.password,
    POSTGRES_DB: login.database,
    PGHOST: login.host,
    PGPORT: '5432',
    PGUSER: login.user,
    PGPASSWORD: login.password,
    PGDATABASE: login.database,
    // The database has no TLS, and drivers of Go require it by default.
    PGSSLMODE: 'disable',
  }),
};

const redis: ServiceKind = {
  ports: [6379],
  user: 999,
  mount: '/data',
  scratch: ['/tmp'],
  memory: '256Mi',
  login: { password: { names: ['REDIS_PASSWORD'], mayBeEmpty: true } },
  environment: () => ({}),
  args: ({ password }, memory) => [
    'redis-server',
    ...['--dir', '/data', '--appendonly', 'yes', '--protected-mode', 'no'],
    // Refuses writes before the kernel kills it.
    ...['--maxmemory', String((memory * 3n) / 4n), '--maxmemory-policy', 'noeviction'],
    ...(password === '' ? [] : ['--requirepass', password]),
  ],
  url: ({ host, credentials }) => `redis://${credentials}${host}:6379`,
  variables: (login) => ({
    REDIS_URL: redis.url(login),
    REDIS_HOST: login.host,
    REDIS_PORT: '6379',
    ...(login.password === '' ? {} : { REDIS_PASSWORD: login.password }),
  }),
};

const mongo: ServiceKind = {
  ports: [27_017],
  user: 999,
  mount: '/data/db',
  scratch: ['/tmp', '/data/configdb'],
  memory: '512Mi',
  login: {
    user: { names: ['MONGO_INITDB_ROOT_USERNAME'], usual: 'app' },
    password: { names: ['MONGO_INITDB_ROOT_PASSWORD'], mayBeEmpty: true },
    database: { names: ['MONGO_INITDB_DATABASE'], usual: 'app' },
  },
  environment: ({ user, password, database }) => ({
    ...(password === '' ? {} : { MONGO_INITDB_ROOT_USERNAME: user, MONGO_INITDB_ROOT_PASSWORD: password }),
    MONGO_INITDB_DATABASE: database,
  }),
  args: () => ['mongod', '--wiredTigerCacheSizeGB', '0.25'],
  url: ({ host, credentials, database }) =>
    `mongodb://${credentials}${host}:27017/${database}${credentials === '' ? '' : '?authSource=admin'}`,
  variables: (login) => ({
    MONGO_URL: mongo.url(login),
    MONGODB_URI: mongo.url(login),
    MONGODB_URL: mongo.url(login),
    MONGO_URI: mongo.url(login),
    MONGO_HOST: login.host,
    MONGO_PORT: '27017',
  }),
};

const hasValue = (value: string | undefined): boolean => value !== undefined && value !== '';

const mysql: ServiceKind = {
  ports: [3306],
  user: 999,
  mount: '/var/lib/mysql',
  scratch: ['/tmp', '/var/run/mysqld'],
  memory: '512Mi',
  login: {
    user: { names: ['MYSQL_USER', 'MARIADB_USER'], usual: 'root' },
    password: {
      names: ['MYSQL_PASSWORD', 'MARIADB_PASSWORD', 'MYSQL_ROOT_PASSWORD', 'MARIADB_ROOT_PASSWORD'],
      mayBeEmpty: false,
    },
    database: { names: ['MYSQL_DATABASE', 'MARIADB_DATABASE'], usual: 'app' },
  },
  environment: ({ user, password, database, generated, readSetting }) => ({
    MYSQL_DATABASE: database,
    ...(user === 'root'
      ? { MYSQL_ROOT_PASSWORD: password }
      : {
          MYSQL_USER: user,
          MYSQL_PASSWORD: password,
          // The image does not start with an empty one.
          ...(hasValue(readSetting('MYSQL_ROOT_PASSWORD')) || hasValue(readSetting('MARIADB_ROOT_PASSWORD'))
            ? {}
            : { MYSQL_ROOT_PASSWORD: generated }),
        }),
  }),
  url: ({ host, credentials, database }) => `mysql://${credentials}${host}:3306/${database}`,
  variables: (login) => ({
    DATABASE_URL: mysql.url(login),
    MYSQL_URL: mysql.url(login),
    MYSQL_HOST: login.host,
    MYSQL_PORT: '3306',
    MYSQL_USER: login.user,
    MYSQL_PASSWORD: login.password,
    MYSQL_DATABASE: login.database,
  }),
};

const qdrant: ServiceKind = {
  ports: [6333, 6334],
  user: 1000,
  mount: '/qdrant/storage',
  scratch: ['/tmp'],
  memory: '256Mi',
  login: { password: { names: ['QDRANT__SERVICE__API_KEY'], mayBeEmpty: true } },
  environment: ({ password }) => ({
    ...(password === '' ? {} : { QDRANT__SERVICE__API_KEY: password }),
    QDRANT__STORAGE__SNAPSHOTS_PATH: '/qdrant/storage/snapshots',
    QDRANT_INIT_FILE_PATH: '/qdrant/storage/.qdrant-initialized',
    QDRANT__TELEMETRY_DISABLED: 'true',
  }),
  url: ({ host }) => `http://${host}:6333`,
  variables: (login) => ({
    QDRANT_URL: qdrant.url(login),
    QDRANT_HOST: login.host,
    QDRANT_PORT: '6333',
    ...(login.password === '' ? {} : { QDRANT_API_KEY: login.password }),
  }),
};

const chroma: ServiceKind = {
  ports: [8000],
  user: 1000,
  mount: '/data',
  scratch: ['/tmp'],
  memory: '512Mi',
  login: {},
  environment: () => ({ IS_PERSISTENT: 'TRUE', PERSIST_DIRECTORY: '/data', ANONYMIZED_TELEMETRY: 'FALSE' }),
  url: ({ host }) => `http://${host}:8000`,
  variables: (login) => ({ CHROMA_URL: chroma.url(login), CHROMA_HOST: login.host, CHROMA_PORT: '8000' }),
};

const minio: ServiceKind = {
  ports: [9000, 9001],
  user: 1000,
  mount: '/data',
  scratch: ['/tmp'],
  memory: '256Mi',
  login: {
    user: { names: ['MINIO_ROOT_USER', 'MINIO_ACCESS_KEY'], usual: 'app-access' },
    password: { names: ['MINIO_ROOT_PASSWORD', 'MINIO_SECRET_KEY'], mayBeEmpty: false },
  },
  environment: ({ user, password }) => ({ MINIO_ROOT_USER: user, MINIO_ROOT_PASSWORD: password }),
  args: () => ['server', '/data', '--console-address', ':9001'],
  url: ({ host }) => `http://${host}:9000`,
  variables: (login) => ({
    S3_ENDPOINT: minio.url(login),
    S3_ACCESS_KEY: login.user,
    S3_SECRET_KEY: login.password,
    MINIO_ENDPOINT: `${login.host}:9000`,
    MINIO_ACCESS_KEY: login.user,
    MINIO_SECRET_KEY: login.password,
    AWS_ENDPOINT_URL_S3: minio.url(login),
    AWS_ACCESS_KEY_ID: login.user,
    AWS_SECRET_ACCESS_KEY: login.password,
    AWS_REGION: 'us-east-1',
  }),
};

const meilisearch: ServiceKind = {
  ports: [7700],
  user: 1000,
  mount: '/meili_data',
  scratch: ['/tmp'],
  memory: '512Mi',
  login: { password: { names: ['MEILI_MASTER_KEY'], mayBeEmpty: true } },
  environment: ({ password }) => ({
    ...(password === '' ? {} : { MEILI_MASTER_KEY: password }),
    MEILI_HTTP_ADDR: '0.0.0.0:7700',
    MEILI_DB_PATH: '/meili_data/data.ms',
    MEILI_DUMP_DIR: '/meili_data/dumps',
    MEILI_SNAPSHOT_DIR: '/meili_data/snapshots',
    MEILI_NO_ANALYTICS: 'true',
  }),
  url: ({ host }) => `http://${host}:7700`,
  variables: (login) => ({
    MEILI_URL: meilisearch.url(login),
    MEILI_HOST: meilisearch.url(login),
    ...(login.password === '' ? {} : { MEILI_MASTER_KEY: login.password }),
  }),
};

export const serviceKinds: Readonly<Record<ServiceType, ServiceKind>> = {
  postgres,
  redis,
  mongo,
  mysql,
  qdrant,
  chroma,
  minio,
  meilisearch,
};
