// What is read of the plans of other planners.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import { planned as nixpacks, extractMessage } from '../../../corpus/plan/nixpacks.ts';
import { planned as railpack, refuse } from '../../../corpus/plan/railpack.ts';

test('Railpack: a program, and files behind Caddy', () => {
  const program = railpack(
    {
      steps: [{ commands: [{ cmd: 'pip install -r requirements.txt' }, {}] }],
      deploy: { startCommand: 'python main.py' },
    },
    '/nowhere',
  );
  assert.deepEqual([program.strategy, program.start, program.serves], ['python', 'python main.py', undefined]);
  const caddyfile = ':80 {\n\troot * /app/dist\n\tfile_server\n}';
  const files = railpack(
    {
      steps: [{ commands: [{ cmd: 'npm run build' }], assets: { Caddyfile: caddyfile } }],
      deploy: { startCommand: 'caddy run --config /Caddyfile' },
    },
    '/nowhere',
  );
  assert.deepEqual([files.strategy, files.serves], ['static', 'dist']);
  assert.equal(railpack({ steps: [] }, '/nowhere').refused, true);
});

test('Nixpacks: a program, and a folder that is served', () => {
  const program = nixpacks(
    {
      phases: { setup: { nixPkgs: ['go_1_22'] }, build: { cmds: ['go build -o out ./cmd/a'] } },
      start: { cmd: './out' },
    },
    '/nowhere',
  );
  assert.deepEqual([program.strategy, program.build], ['go', 'go build -o out ./cmd/a']);
  const rust = { phases: { build: { cmds: ['cargo build --release'] } }, start: { cmd: './bin/a' } };
  assert.equal(nixpacks(rust, '/nowhere').strategy, 'rust');
  assert.equal(nixpacks({ start: { cmd: 'npx serve dist' } }, '/nowhere').serves, 'dist');
  assert.equal(nixpacks({ start: {} }, '/nowhere').refused, true);
});

test('counts a refusal of Railpack for want of the network apart', () => {
  for (const words of ['✖ No version available for php 8.2', 'lookup github.com: no such host'])
    assert.equal(refuse(words).unreachable, true);
  assert.equal(refuse('⚠ No start command detected.').unreachable, undefined);
});

test('quotes the error of Nixpacks, and not the calls that led there', () => {
  const output = 'Error: Unsupported Gradle version: 9\n\nStack backtrace:\n   0: anyhow::error\n   1: main\n';
  assert.equal(extractMessage(output), 'Error: Unsupported Gradle version: 9');
});
