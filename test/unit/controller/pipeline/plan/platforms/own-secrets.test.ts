// Which variables hold a secret that only the app itself has to know.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import { isOwnSecret, readOwnSecrets } from '../../../../../../controller/pipeline/plan/platforms/own-secrets.ts';
import { createMemoryTree } from '../../../../../../controller/pipeline/tree.ts';

const names = (files: Record<string, string>): readonly string[] =>
  (readOwnSecrets(createMemoryTree(files))?.env ?? []).map(({ name, value }) => {
    assert.equal(value, '${{secret}}');
    return name;
  });

test('recognizes session keys as the app’s own, but not credentials from other services', () => {
  for (const name of [
    'SECRET',
    'SECRET_KEY',
    'APP_SECRET',
    'DJANGO_SECRET_KEY',
    'NEXTAUTH_SECRET',
    'MEMOS_SESSION_SECRET',
    'JWT_SECRET',
    'SECRET_KEY_BASE',
  ])
    assert.ok(isOwnSecret(name), name);
  for (const name of [
    'STRIPE_SECRET_KEY',
    'GITHUB_CLIENT_SECRET',
    'AWS_SECRET_ACCESS_KEY',
    'SECRET_MANAGER',
    'API_SECRET',
    'CLERK_SECRET_KEY',
    'WEBHOOK_SECRET',
    'secret',
  ])
    assert.ok(!isOwnSecret(name), name);
});

test("finds them in sample environment files, in Django's settings, and for frameworks that need one", () => {
  assert.deepEqual(
    names({
      '.env.example': 'APP_SECRET=REPLACE_WITH_LONG_SECRET\n# JWT_SECRET=\nOPENAI_API_KEY=\nSESSION_SECRET=x\n',
    }),
    ['APP_SECRET', 'SESSION_SECRET'],
  );
  assert.deepEqual(names({ 'hc/settings.py': 'SECRET_KEY = os.getenv("SECRET_KEY", "---")\n' }), ['SECRET_KEY']);
  assert.deepEqual(names({ 'hc/settings.py': 'SECRET_KEY = "django-insecure-1"\n' }), []);
  assert.deepEqual(names({ Gemfile: 'source "x"\ngem "rails", "~> 8.0"\n' }), ['SECRET_KEY_BASE']);
  assert.deepEqual(names({ 'mix.exs': 'defp deps, do: [{:phoenix, "~> 1.7"}]' }), ['SECRET_KEY_BASE']);
  assert.equal(readOwnSecrets(createMemoryTree({ 'app.py': 'SECRET_KEY=1' })), undefined);
});
