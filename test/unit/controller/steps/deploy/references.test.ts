// What an author's value may name of services and models, and that what he writes literally comes out as it went in.
import assert from 'node:assert/strict';
import fc from 'fast-check';
import { test } from 'vitest';
import { services as schema } from '../../../../../crds/backing-services.ts';
import { expanded, namesModelKey } from '../../../../../controller/steps/deploy/references.ts';

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

test('placeholders become what they name; anything else stays as it is written', () => {
  const value = (text: string): string => kubelet(expanded(text, { services: [db, cache], app: site }), known);
  assert.equal(value('${{services.db.url}}?x=1'), 'postgresql://me:generated@db:5432/me?x=1');
  assert.equal(value('${{ services.db.user }}:${{services.db.password}}'), 'me:generated');
  assert.equal(value('${{services.db.host}}:${{services.db.port}}/${{services.db.database}}'), 'db:5432/me');
  assert.equal(value('$${{services.db.password}}$(PATH)'), '$generated$(PATH)');
  assert.equal(value('${{services.cache.password}}'), 'a$(PATH)$$b@/');
  assert.equal(value('${{services.cache.url}}'), 'redis://:a%24(PATH)%24%24b%40%2F@cache:6379');
  assert.equal(value('${{services.other.url}}'), '${{services.other.url}}');
  assert.equal(value('${{app.url}}/cb?host=${{ app.host }}'), 'https://chat.apps.test:8443/cb?host=chat.apps.test');
  assert.equal(value('${{app.name}}'), '${{app.name}}');
  assert.equal(value('${{services.db.shell}}'), '${{services.db.shell}}');
});

test('a literal value comes out of the kubelet as its author wrote it', () => {
  const dollars = fc.string({ unit: fc.constantFrom('$', '(', ')', 'P', 'ATH', '{', '}', 'a') });
  fc.assert(
    fc.property(dollars, (text) => {
      assert.equal(kubelet(expanded(text, { services: [db], app: site }), known), text);
    }),
  );
  fc.assert(
    fc.property(dollars, dollars, (before, after) => {
      const whole = `${before}\${{services.db.password}}${after}`;
      assert.equal(kubelet(expanded(whole, { services: [db], app: site }), known), `${before}generated${after}`);
    }),
  );
});

test('a value may name the base URL of models, its origin and the token, and only where the app has models', () => {
  const models = { url: 'http://models.example.svc:8081/v1', keyVariable: 'MOORAGE_MODELS_KEY' };
  const value = (text: string): string =>
    kubelet(expanded(text, { app: site, services: [db], models }), { ...known, MOORAGE_MODELS_KEY: 'token' });
  assert.equal(value('${{models.url}}/chat/completions'), 'http://models.example.svc:8081/v1/chat/completions');
  assert.equal(value('${{ models.origin }}'), 'http://models.example.svc:8081');
  assert.equal(value('a ${{models.key}} of ${{services.db.user}}$'), 'a token of me$');
  assert.equal(value('${{models.secret}}'), '${{models.secret}}');
  assert.equal(kubelet(expanded('${{models.url}}', { services: [db], app: site }), known), '${{models.url}}');
  assert.deepEqual(['${{models.key}}', '${{ models.key }}', '${{models.url}}', 'models.key'].map(namesModelKey), [
    true,
    true,
    false,
    false,
  ]);
});
