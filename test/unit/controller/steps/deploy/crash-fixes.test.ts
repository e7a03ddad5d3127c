// What the last lines of a crashed app are taken for.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import { notFoundFix, suggestCrashFix } from '../../../../../controller/steps/deploy/crash-fixes.ts';

const cases: readonly (readonly [string, RegExp])[] = [
  [
    'Traceback (most recent call last):\n  File "main.py", line 1\nModuleNotFoundError: No module named \'yaml\'',
    /add it to your dependencies/,
  ],
  ["Error [ERR_MODULE_NOT_FOUND]: Cannot find package 'tsx'", /development dependencies/],
  ['OSError: [Errno 28] No space left on device', /run\.resources\.disk/],
  ["Error: EACCES: permission denied, mkdir '/etc/items'", /unprivileged user.*\/tmp/],
  ["PermissionError: [Errno 13] Permission denied: '/data'", /run\.volumes/],
  ['Error: listen EADDRINUSE: address already in use 0.0.0.0:8080', /the same port/],
  ['Error: connect ECONNREFUSED 127.0.0.1:5432', /database/],
  ['psycopg.OperationalError: could not translate host name "db" to address', /database/],
  ["KeyError: 'SERVICE_TOKEN'", /the operator of this installation/],
  ['openai.OpenAIError: The api_key client option must be set either by passing api_key', /run\.env/],
  ['Please set SEARCH_API_KEY before you start', /run\.env/],
  ["The 'port' trait of a Voila instance expected an int, not the str '$PORT'.", /does not expand variables/],
  ['django.core.exceptions.AppRegistryNotReady: Apps are not loaded', /get_asgi_application/],
  ['Segmentation fault', /last lines of its log/],
  ['', /last lines of its log/],
];

test('a crash is explained by the lines before it', () => {
  for (const [log, fix] of cases) assert.match(suggestCrashFix(log), fix, log);
});

test('an app that ends well never started a server; one that is not found is named', () => {
  assert.match(suggestCrashFix('done\n', 0), /without starting a server.*\$PORT/);
  assert.match(suggestCrashFix("KeyError: 'SERVICE_TOKEN'", 0), /run\.env/);
  assert.match(notFoundFix('sh: 1: tsx: not found\n'), /calls tsx, which is not in the image/);
  assert.match(notFoundFix(''), /start command was not found/);
});

test('a long line takes no long time', () => {
  assert.match(suggestCrashFix('missing '.repeat(100_000)), /last lines of its log/);
});
