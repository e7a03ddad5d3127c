// Variables that an app and its services are given.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import { services as schema } from '../../../../../../crds/backing-services.ts';
import { imageOf } from '../../../../../../controller/steps/deploy/services/images.ts';
import { serviceKinds } from '../../../../../../controller/steps/deploy/services/kinds.ts';
import { loginOf } from '../../../../../../controller/steps/deploy/services/login.ts';
import { config } from '../../../../../support/operator/scenario.ts';

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

const [db] = schema.parse([{ name: 'db', type: 'postgres' }]);
assert.ok(db !== undefined);

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
  const byDigest = `postgres:17-trixie@sha256:${'13'.repeat(32)}`;
  const pinned = { ...offered, images: { postgres: byDigest } };
  assert.deepEqual(imageOf({ ...db, version: '17.2' }, pinned), { image: byDigest });
  assert.deepEqual(imageOf({ ...db, version: '13' }, pinned), {
    image: byDigest,
    note: 'version 13 was asked for; this installation runs postgres:17-trixie',
  });
});
