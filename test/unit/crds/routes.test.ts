// Which component gets a request, and under which names its port is known.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import { formatSubdomainLabel, isReserved, parseHostLabel } from '../../../crds/names.ts';
import {
  assignServicePorts,
  chooseComponent,
  formatPortName,
  parsePodComponents,
  stripRoutePath,
  type PodComponent,
} from '../../../crds/routes.ts';

const listener = (name: string, path: string, more: object = {}): PodComponent => ({
  ...{ name, image: 'i', port: 8000 },
  route: { path, stripPath: false, ...more },
});
const list = [
  listener('web', '/'),
  listener('api', '/api', { stripPath: true }),
  listener('admin', '/api/admin', { morePaths: ['/sign-in', '/api/sign-in'] }),
  listener('docs', '/', { subdomain: 'docs' }),
  listener('files', '/files', { subdomain: 'docs' }),
  { name: 'worker', image: 'i', port: 9000 },
];

test.each([
  ['/', undefined, 'web'],
  ['/apis', undefined, 'web'],
  ['/api', undefined, 'api'],
  ['/api?x=/api/admin', undefined, 'api'],
  ['/api/users', undefined, 'api'],
  ['/api/admin/', undefined, 'admin'],
  ['/sign-in?next=/', undefined, 'admin'],
  ['/sign-in-here', undefined, 'web'],
  ['/api/sign-in/a', undefined, 'admin'],
  ['/files/a', 'docs', 'files'],
  ['/anything', 'docs', 'docs'],
  ['/', 'other', undefined],
])('%s at subdomain %s goes to %s', (url, subdomain, name) => {
  assert.equal(chooseComponent(list, subdomain, url)?.name, name);
});

test.each([
  ['/api/users?page=2', '/users?page=2'],
  ['/api', '/'],
  ['/api/', '/'],
  ['/api?x=1', '/?x=1'],
])('removes the path of a route from %s, which leaves %s', (url, rest) => {
  assert.equal(stripRoutePath(url, { path: '/api', stripPath: true }), rest);
  assert.equal(stripRoutePath(url, { path: '/api', stripPath: false }), url);
});

test.each([
  ['/api/users', '/users'],
  ['/api/ws', '/api/ws'],
  ['/api/ws/1?x', '/api/ws/1?x'],
  ['/ws/a', '/ws/a'],
])('removes only the first path of a route: %s becomes %s', (url, rest) => {
  assert.equal(stripRoutePath(url, { path: '/api', stripPath: true, morePaths: ['/ws', '/api/ws'] }), rest);
});

test('names ports in at most 15 characters, none like a protocol', () => {
  assert.equal(formatPortName(listener('page', '/')), 'http');
  assert.equal(formatPortName(listener('api', '/api')), 'api');
  for (const name of ['a-very-long-name-of-a-component', 'a--b', 'https', 'http'])
    assert.match(formatPortName(listener(name, '/x')), /^c-[0-9a-f]{10}$/);
});

test('gives each name a port of the Service that does not depend on the other components', () => {
  const alone = assignServicePorts([listener('web', '/'), listener('api', '/api')]);
  const among = assignServicePorts(list);
  assert.equal(alone.get('http'), 80);
  assert.equal(alone.get('api'), among.get('api'));
  assert.equal(new Set(among.values()).size, among.size);
  assert.deepEqual([...assignServicePorts([])], [['http', 80]]);
});

test('reads an annotation, and takes one that it cannot read for that of an app of one process', () => {
  assert.deepEqual(parsePodComponents(JSON.stringify(list)), list);
  assert.deepEqual([undefined, '{', '[{"name":1}]'].map(parsePodComponents), [undefined, undefined, undefined]);
});

test('the host name of a component is one label, which no app can have as its name', () => {
  const label = formatSubdomainLabel('hello', 'docs');
  assert.equal(label, 'hello--docs');
  assert.deepEqual(parseHostLabel(label), { app: 'hello', subdomain: 'docs' });
  assert.deepEqual(parseHostLabel('my-app'), { app: 'my-app', subdomain: undefined });
  assert.deepEqual([label, 'xn--a', 'a-b'].map(isReserved), [true, true, false]);
});
