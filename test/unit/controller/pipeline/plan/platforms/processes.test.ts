// What a Procfile with several processes becomes, and which release commands become tasks.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import type { DeclaredComponent } from '../../../../../../crds/components.ts';
import { fillAddress, type MergedInput, mergeManifest } from '../../../../../../controller/pipeline/app-manifest.ts';
import { locateApp } from '../../../../../../controller/pipeline/plan/repository.ts';
import { createMemoryTree } from '../../../../../../controller/pipeline/tree.ts';
import { sampleInput } from '../../../../../support/pipeline/sample.ts';

type Files = Parameters<typeof createMemoryTree>[0];
const merge = (files: Files): MergedInput => mergeManifest(sampleInput(), createMemoryTree(files));
const list = (files: Files): readonly DeclaredComponent[] => merge(files).settings?.components ?? [];

const flask = { 'requirements.txt': 'flask\ngunicorn\n', 'app.py': 'from flask import Flask\napp = Flask(__name__)\n' };
const addons = '{"addons": ["heroku-postgresql"]}';

test('runs the workers of a Procfile with the image of web', () => {
  const procfile =
    'web: gunicorn app:app\nworker: celery -A app worker\nstream: python stream.py --port $PORT\nconsole: python\n';
  const components = list({ ...flask, Procfile: procfile });
  assert.deepEqual(
    components.map(({ name, kind, image, command, port, dependsOn }) => [name, kind, image, command, port, dependsOn]),
    [
      ['web', 'web', undefined, undefined, undefined, undefined],
      // The start of web may migrate the database first.
      ['worker', 'worker', 'web', ['sh', '-c', 'exec celery -A app worker'], undefined, ['web']],
      ['stream', 'worker', 'web', ['sh', '-c', 'exec python stream.py --port $PORT'], 9002, ['web']],
    ],
  );
  const { findings } = merge({ ...flask, Procfile: procfile });
  assert.deepEqual(
    findings.map(({ rule }) => rule),
    ['components/found'],
  );
  assert.match(findings[0]?.message ?? '', /not run: console/);
});

test('makes a task of a release command if the app has a database server, which then runs nowhere else', () => {
  const Procfile = 'release: flask db upgrade\nweb: gunicorn app:app --bind 0.0.0.0:5000\nworker: rq worker\n';
  const components = list({ ...flask, Procfile, 'app.json': addons });
  assert.deepEqual(
    components.map(({ name, kind, command, port, dependsOn }) => [name, kind, command?.at(-1), port, dependsOn]),
    [
      ['web', 'web', 'exec gunicorn app:app --bind 0.0.0.0:5000', 5000, undefined],
      ['worker', 'worker', 'exec rq worker', undefined, undefined],
      ['release', 'task', 'exec flask db upgrade', undefined, undefined],
    ],
  );
});

test('leaves a release command to the start of web without a server, and in languages that start otherwise', () => {
  const Procfile = 'release: flask db upgrade\nweb: gunicorn app:app\n';
  assert.deepEqual(list({ ...flask, Procfile }), []);
  const laravel = {
    'composer.json': '{"require":{"laravel/framework":"11"}}',
    'package.json': '{}',
    'app.json': addons,
  };
  const php =
    'web: vendor/bin/heroku-php-apache2 public/\nrelease: php artisan migrate --force\nqueue: php artisan queue:work\n';
  assert.deepEqual(
    list({ ...laravel, Procfile: php }).map(({ name, kind, command }) => [name, kind, command?.at(-1)]),
    [
      ['web', 'web', undefined],
      ['queue', 'worker', 'exec php artisan queue:work'],
    ],
  );
});

test('keeps one process with a Dockerfile, or where the author describes one', () => {
  const Procfile = 'web: gunicorn app:app\nworker: celery -A app worker\n';
  assert.deepEqual(list({ ...flask, Procfile, Dockerfile: 'FROM a\nCMD b\n' }), []);
  const one = merge({ ...flask, Procfile, 'moorage.yaml': 'source: {path: .}' });
  assert.equal(one.settings?.components, undefined);
  assert.deepEqual(
    one.findings.map(({ rule }) => rule),
    ['procfile/not-run'],
  );
  const app = locateApp(sampleInput(), createMemoryTree({ ...flask, Procfile }));
  assert.equal(app.settings?.components?.length, 2);
  assert.deepEqual(
    app.images.map(({ component }) => component?.name),
    ['web'],
  );
});

test('rejects more processes than an app may have', () => {
  const Procfile = ['web', ...Array.from({ length: 8 }, (_, index) => `w${index}`)]
    .map((name) => `${name}: run\n`)
    .join('');
  const { settings, findings } = merge({ ...flask, Procfile });
  assert.equal(settings?.components, undefined);
  assert.deepEqual(
    findings.filter(({ severity }) => severity === 'error').map(({ rule }) => rule),
    ['procfile/too-many-processes'],
  );
});

test('fills the address of the app into variables of a build, with its port in addresses', () => {
  const list = [
    { name: 'A', value: '${{app.url}}/api' },
    { name: 'B', value: 'wss://${{ app.host }}/ws' },
    { name: 'C', value: '${{app.host}}' },
    { name: 'D', value: '${{app.api.url}}/v1,wss://${{app.api.host}}/ws,${{app.api.host}}' },
  ];
  const values = (url?: string): string[] => fillAddress(list, url).map(({ value }) => value);
  assert.deepEqual(values('https://shop.apps.test:8443'), [
    'https://shop.apps.test:8443/api',
    'wss://shop.apps.test:8443/ws',
    'shop.apps.test',
    'https://shop--api.apps.test:8443/v1,wss://shop--api.apps.test:8443/ws,shop--api.apps.test',
  ]);
  assert.deepEqual(values('https://shop.example.org'), [
    'https://shop.example.org/api',
    'wss://shop.example.org/ws',
    'shop.example.org',
    'https://shop--api.example.org/v1,wss://shop--api.example.org/ws,shop--api.example.org',
  ]);
  assert.equal(values()[0], '${{app.url}}/api');
  const input = { ...sampleInput(), url: 'https://shop.example.org' };
  const tree = createMemoryTree({ ...flask, 'moorage.yaml': 'build: {env: [{name: SITE, value: "${{app.url}}"}]}' });
  assert.deepEqual(mergeManifest(input, tree).input.build.env, [{ name: 'SITE', value: 'https://shop.example.org' }]);
});
