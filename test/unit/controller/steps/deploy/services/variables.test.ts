// Values that an app is given of its services, and that what an author writes literally comes out as it went in.
import assert from 'node:assert/strict';
import fc from 'fast-check';
import { test } from 'vitest';
import { services as schema } from '../../../../../../crds/backing-services.ts';
import { imageOf } from '../../../../../../controller/steps/deploy/services/images.ts';
import { serviceKinds } from '../../../../../../controller/steps/deploy/services/kinds.ts';
import { loginOf } from '../../../../../../controller/steps/deploy/services/login.ts';
import { expanded } from '../../../../../../controller/steps/deploy/services/variables.ts';
import { config } from '../../../../../support/operator/scenario.ts';

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
const known = { MOORAGE_DB_PASSWORD: 'generated', PATH: '/bin' };

test('placeholders become what they name; anything else stays as it is written', () => {
  const value = (text: string): string => kubelet(expanded(text, [db, cache]), known);
  assert.equal(value('${{services.db.url}}?x=1'), 'postgresql://me:generated@db:5432/me?x=1');
  assert.equal(value('${{ services.db.user }}:${{services.db.password}}'), 'me:generated');
  assert.equal(value('${{services.db.host}}:${{services.db.port}}/${{services.db.database}}'), 'db:5432/me');
  assert.equal(value('$${{services.db.password}}$(PATH)'), '$generated$(PATH)');
  assert.equal(value('${{services.cache.password}}'), 'a$(PATH)$$b@/');
  assert.equal(value('${{services.cache.url}}'), 'redis://:a%24(PATH)%24%24b%40%2F@cache:6379');
  assert.equal(value('${{services.other.url}}'), '${{services.other.url}}');
  assert.equal(value('${{services.db.shell}}'), '${{services.db.shell}}');
});

test('a literal value comes out of the kubelet as its author wrote it', () => {
  const dollars = fc.string({ unit: fc.constantFrom('$', '(', ')', 'P', 'ATH', '{', '}', 'a') });
  fc.assert(
    fc.property(dollars, (text) => {
      assert.equal(kubelet(expanded(text, [db]), known), text);
    }),
  );
  fc.assert(
    fc.property(dollars, dollars, (before, after) => {
      const whole = `${before}\${{services.db.password}}${after}`;
      assert.equal(kubelet(expanded(whole, [db]), known), `${before}generated${after}`);
    }),
  );
});

test('every type has an address that names it, and no variable is empty', () => {
  for (const [type, kind] of Object.entries(serviceKinds)) {
    const [service] = schema.parse([{ name: 'it', type }]);
    assert.ok(service !== undefined);
    const login = loginOf(service, kind.login);
    assert.match(kind.url(login), new RegExp(`it:${kind.ports[0]}`), type);
    for (const [name, value] of Object.entries(kind.variables(login))) assert.notEqual(value, '', `${type} ${name}`);
  }
});

test('MySQL as root has one password, and another user a generated one for root beside his', () => {
  const environment = (env: { name: string; value: string }[]): Readonly<Record<string, string>> => {
    const [service] = schema.parse([{ name: 'it', type: 'mysql', env }]);
    assert.ok(service !== undefined);
    return serviceKinds.mysql.environment(loginOf(service, serviceKinds.mysql.login));
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

test('the image of the version that is asked for is used where there is one, else it is said', () => {
  const offered = { ...config.run.services, images: { postgres: 'postgres:17-trixie', 'postgres-16': 'postgres:16' } };
  const chosen = (version?: string): unknown => imageOf({ ...db, version }, offered);
  assert.deepEqual(chosen(), { image: 'postgres:17-trixie' });
  assert.deepEqual(chosen('17.2-alpine'), { image: 'postgres:17-trixie' });
  assert.deepEqual(chosen('16-alpine'), { image: 'postgres:16' });
  assert.deepEqual(chosen('13'), {
    image: 'postgres:17-trixie',
    note: 'version 13 was asked for; this installation runs postgres:17-trixie',
  });
  assert.deepEqual(chosen('latest'), { image: 'postgres:17-trixie' });
});
