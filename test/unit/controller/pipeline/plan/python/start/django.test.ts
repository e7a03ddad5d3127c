// Which variable Django settings read their host names from.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import { buildAllowedHosts } from '../../../../../../../controller/pipeline/plan/python/start/django.ts';
import { createMemoryTree } from '../../../../../../../controller/pipeline/tree.ts';

const cases: readonly (readonly [string, string | undefined])[] = [
  ['ALLOWED_HOSTS = envsplit("ALLOWED_HOSTS", "localhost")', 'ALLOWED_HOSTS'],
  ['ALLOWED_HOSTS = os.environ.get("DJANGO_ALLOWED_HOSTS", "").split(",")', 'DJANGO_ALLOWED_HOSTS'],
  ["ALLOWED_HOSTS = config('ALLOWED_HOSTS', cast=Csv())", 'ALLOWED_HOSTS'],
  ["ALLOWED_HOSTS: list[str] = env.list('APP_HOSTS')", 'APP_HOSTS'],
  ['if v := os.getenv("ALLOWED_HOSTS"):\n    ALLOWED_HOSTS = v.split(",")', 'ALLOWED_HOSTS'],
  ["ALLOWED_HOSTS = ['*']", undefined],
  ['ALLOWED_HOSTS = ["example.org"]  # not from the environment', undefined],
  ['# ALLOWED_HOSTS = env("ALLOWED_HOSTS")', undefined],
];

test('sets the variable only for settings that read their host names from it', () => {
  for (const [line, name] of cases)
    assert.deepEqual(
      buildAllowedHosts(createMemoryTree({ 'config/settings/base.py': `DEBUG = False\n${line}\n` })),
      name === undefined ? {} : { [name]: '*' },
      line,
    );
  assert.deepEqual(buildAllowedHosts(createMemoryTree({ 'app.py': 'ALLOWED_HOSTS = env("ALLOWED_HOSTS")' })), {});
});
