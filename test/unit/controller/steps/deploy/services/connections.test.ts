// Variables that an app and its services are given.
import assert from 'node:assert/strict';
import fc from 'fast-check';
import { test } from 'vitest';
import {
  expandReferences,
  hasModelKeyReference,
  resolveLogin,
} from '../../../../../../controller/steps/deploy/services/connections.ts';
import { serviceKinds } from '../../../../../../controller/steps/deploy/services/kinds.ts';
import { chooseImage } from '../../../../../../controller/steps/deploy/services/services.ts';
import { services as schema } from '../../../../../../crds/backing-services.ts';
import { config } from '../../../../../support/operator/scenario.ts';

test('gives every type an address with its name, and no empty variables', () => {
  for (const [type, kind] of Object.entries(serviceKinds)) {
    const [service] = schema.parse([{ name: 'it', type }]);
    assert.ok(service !== undefined);
    const login = resolveLogin(service, kind.login);
    assert.match(kind.url(login), new RegExp(`it:${kind.ports[0]}`), type);
    for (const [name, value] of Object.entries(kind.variables(login))) assert.notEqual(value, '', `${type} ${name}`);
  }
});

test('gives MySQL one password for root, and a generated root password next to that of another user', () => {
  const environment = (env: { name: string; value: string }[]): Readonly<Record<string, string>> => {
    const [service] = schema.parse([{ name: 'it', type: 'mysql', env }]);
    assert.ok(service !== undefined);
    return serviceKinds.mysql.environment(resolveLogin(service, serviceKinds.mysql.login));
  };
  assert.deepEqual(environment([{ name: 'MYSQL_ROOT_PASSWORD', value: 'r' }]), {
    MYSQL_DATABASE: 'app',
    MYSQL_ROOT_PASSWORD: 'r',
  });
  const user = [
    { name: 'MYSQL_USER', value: 'me' },
    { name: 'MYSQL_PASSWORD', value: 'p' },
  ];
  const both = {
    MYSQL_DATABASE: 'app',
    MYSQL_USER: 'me',
    MYSQL_PASSWORD: 'p',
    MYSQL_ROOT_PASSWORD: '$(MOORAGE_IT_PASSWORD)',
  };
  assert.deepEqual(environment(user), both);
  assert.deepEqual(environment([...user, { name: 'MYSQL_ROOT_PASSWORD', value: '' }]), both);
});

const [plain] = schema.parse([{ name: 'db', type: 'postgres' }]);
assert.ok(plain !== undefined);

test('uses the image of the requested version if there is one, and reports a different one', () => {
  const offered = { ...config.run.services, images: { postgres: 'postgres:17-trixie', 'postgres-16': 'postgres:16' } };
  const chosen = (version?: string): unknown => chooseImage({ ...plain, version }, offered);
  assert.deepEqual(chosen(), { image: 'postgres:17-trixie' });
  assert.deepEqual(chosen('17.2-alpine'), { image: 'postgres:17-trixie' });
  assert.deepEqual(chosen('16-alpine'), { image: 'postgres:16' });
  assert.deepEqual(chosen('13'), {
    image: 'postgres:17-trixie',
    note: 'version 13 was asked for; this installation runs postgres:17-trixie',
  });
  assert.deepEqual(chosen('latest'), { image: 'postgres:17-trixie' });
  const byDigest = `postgres:17-trixie@sha256:${'13'.repeat(32)}`;
  const pinned = { ...offered, images: { postgres: byDigest } };
  assert.deepEqual(chooseImage({ ...plain, version: '17.2' }, pinned), { image: byDigest });
  assert.deepEqual(chooseImage({ ...plain, version: '13' }, pinned), {
    image: byDigest,
    note: 'version 13 was asked for; this installation runs postgres:17-trixie',
  });
});

// Which parts of services and models an author's value may name, and that literal text stays unchanged.

/** As the kubelet expands a value: $$ is a dollar, $(NAME) a variable that is known, and all else itself. */
function kubelet(value: string, known: Readonly<Record<string, string>>): string {
  return value.replaceAll(/\$\$|\$\(([^)]*)\)/g, (whole, name: string | undefined) =>
    name === undefined ? '$' : (known[name] ?? whole),
  );
}

const [db, cache] = schema.parse([
  { name: 'db', type: 'postgres', env: [{ name: 'POSTGRES_USER', value: 'me' }] },
  {
    name: 'cache',
    type: 'redis',
    env: [{ name: 'REDIS_PASSWORD', value: 'a$(PATH)$$b@/' }],
  },
]);
assert.ok(db !== undefined && cache !== undefined);
const site = { host: 'chat.apps.test', url: 'https://chat.apps.test:8443' };
const known = { MOORAGE_DB_PASSWORD: 'generated', PATH: '/bin' };

test('replaces placeholders with their values, and keeps everything else as written', () => {
  const value = (text: string): string => kubelet(expandReferences(text, { services: [db, cache], app: site }), known);
  assert.equal(value('${{services.db.url}}?x=1'), 'postgresql://me:generated@db:5432/me?x=1');
  assert.equal(value('${{ services.db.user }}:${{services.db.password}}'), 'me:generated');
  assert.equal(value('${{services.db.host}}:${{services.db.port}}/${{services.db.database}}'), 'db:5432/me');
  assert.equal(value('$${{services.db.password}}$(PATH)'), '$generated$(PATH)');
  assert.equal(value('${{services.cache.password}}'), 'a$(PATH)$$b@/');
  assert.equal(value('${{services.cache.url}}'), 'redis://:a%24(PATH)%24%24b%40%2F@cache:6379');
  assert.equal(value('${{services.other.url}}'), '${{services.other.url}}');
  assert.equal(value('${{app.url}}/cb?host=${{ app.host }}'), 'https://chat.apps.test:8443/cb?host=chat.apps.test');
  assert.equal(value('${{app.api.url}}'), '${{app.api.url}}', 'no component has this subdomain');
  assert.equal(value('${{app.name}}'), '${{app.name}}');
  assert.equal(value('${{services.db.shell}}'), '${{services.db.shell}}');
});

test('replaces the addresses of subdomains that components have', () => {
  const app = { ...site, subdomains: ['api'] };
  const value = (text: string): string => expandReferences(text, { services: [], app });
  assert.equal(value('${{app.api.url}}/v1'), 'https://chat--api.apps.test:8443/v1');
  assert.equal(value('${{ app.api.host }},${{app.host}}'), 'chat--api.apps.test,chat.apps.test');
  assert.equal(value('${{app.docs.url}}'), '${{app.docs.url}}');
});

test("turns off TLS in addresses of the app's own databases, which have none, and in no other", () => {
  const value = (text: string): string => expandReferences(text, { services: [db, cache], app: site });
  const cases: readonly (readonly [string, string])[] = [
    ['postgres://me:x@db:5432/me?sslmode=require', 'postgres://me:x@db:5432/me?sslmode=disable'],
    [
      '${{services.db.url}}?sslmode=verify-full&channel_binding=require&application_name=a',
      'postgresql://me:$(MOORAGE_DB_PASSWORD)@db:5432/me?application_name=a&sslmode=disable',
    ],
    ['jdbc:postgresql://db/me', 'jdbc:postgresql://db/me?sslmode=disable'],
    ['jdbc:postgresql://${{services.db.host}}:5432/me?ssl=true', 'jdbc:postgresql://db:5432/me?sslmode=disable'],
    ['host=db user=me dbname=me', 'host=db user=me dbname=me sslmode=disable'],
    ['host=db sslmode=require user=me', 'host=db sslmode=disable user=me'],
    ['Host=db;Username=me;SSL Mode=Require', 'Host=db;Username=me;SSL Mode=Disable'],
    ['rediss://:x@cache:6379', 'redis://:x@cache:6379'],
    // SQLAlchemy passes options of the URL to asyncpg, which has no sslmode.
    ['postgresql+asyncpg://me:x@db/me', 'postgresql+asyncpg://me:x@db/me'],
    ['postgresql+asyncpg://me:x@db/me?ssl=require', 'postgresql+asyncpg://me:x@db/me'],
    ['postgres://me:x@db.example.org/me?sslmode=require', 'postgres://me:x@db.example.org/me?sslmode=require'],
    ['postgres://me:x@ep.neon.tech/db?sslmode=require', 'postgres://me:x@ep.neon.tech/db?sslmode=require'],
    ['rediss://:x@other:6379', 'rediss://:x@other:6379'],
    ['host=other sslmode=require', 'host=other sslmode=require'],
    ['is the host=db reachable?', 'is the host=db reachable?'],
  ];
  for (const [text, expected] of cases) assert.equal(value(text), expected, text);
});

test('gives every driver of PostgreSQL that reads the usual variables a connection without TLS', () => {
  assert.equal(
    serviceKinds.postgres.variables(resolveLogin(plain, serviceKinds.postgres.login))['PGSSLMODE'],
    'disable',
  );
});

test("keeps a literal value unchanged through the kubelet's expansion", () => {
  const dollars = fc.string({ unit: fc.constantFrom('$', '(', ')', 'P', 'ATH', '{', '}', 'a') });
  fc.assert(
    fc.property(dollars, (text) => {
      assert.equal(kubelet(expandReferences(text, { services: [db], app: site }), known), text);
    }),
  );
  fc.assert(
    fc.property(dollars, dollars, (before, after) => {
      const whole = `${before}\${{services.db.password}}${after}`;
      assert.equal(
        kubelet(expandReferences(whole, { services: [db], app: site }), known),
        `${before}generated${after}`,
      );
    }),
  );
});

test("resolves the models' base URL, its origin and the token in a value only if the app has models", () => {
  const models = { url: 'http://models.example.svc:8081/v1', keyVariable: 'MOORAGE_MODELS_KEY' };
  const value = (text: string): string =>
    kubelet(expandReferences(text, { app: site, services: [db], models }), { ...known, MOORAGE_MODELS_KEY: 'token' });
  assert.equal(value('${{models.url}}/chat/completions'), 'http://models.example.svc:8081/v1/chat/completions');
  assert.equal(value('${{ models.origin }}'), 'http://models.example.svc:8081');
  assert.equal(value('a ${{models.key}} of ${{services.db.user}}$'), 'a token of me$');
  assert.equal(value('${{models.secret}}'), '${{models.secret}}');
  assert.equal(kubelet(expandReferences('${{models.url}}', { services: [db], app: site }), known), '${{models.url}}');
  assert.deepEqual(
    ['${{models.key}}', '${{ models.key }}', '${{models.url}}', 'models.key'].map(hasModelKeyReference),
    [true, true, false, false],
  );
});
