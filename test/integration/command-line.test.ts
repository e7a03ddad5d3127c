// Every program ends in its usage where its command line is wrong, and prints it for --help.
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { execa } from 'execa';
import { test } from 'vitest';

const root = join(import.meta.dirname, '..', '..');
/** Every program with a command line, as package.json and cli/bootstrap.sh start it. */
const programs = [
  ...['up', 'down', 'status'].map((command) => ['cli/main.ts', command]),
  ...[
    'api/alone.ts',
    'api/accounting/receipts/verify/main.ts',
    'crds/generate.ts',
    'charts/generate.ts',
    'docs/generate.ts',
    'test/show/tools.ts',
    'test/show/walks.ts',
  ].map((file) => [file]),
  ...['controller', 'pipeline', 'ask', 'tools', 'tool-memory'].map((name) => [`test/bench/${name}.ts`]),
];

for (const program of programs) {
  test(`${program.join(' ')}: prints the usage for an unknown option and for --help`, async () => {
    const [unknown, help] = await Promise.all(
      ['--nonsense', '--help'].map((option) =>
        execa('node', [...program, option], { cwd: root, reject: false, env: { NODE_NO_WARNINGS: '1' } }),
      ),
    );
    assert.equal(unknown?.exitCode, 64, unknown?.stderr);
    assert.match(unknown.stderr, /^\n?unknown option '--nonsense'.*\n\nusage: npm [^]*$/i);
    assert.doesNotMatch(unknown.stderr, /^ +at /m);
    assert.equal(unknown.stdout, '');
    assert.deepEqual([help?.exitCode, help?.stderr], [0, '']);
    assert.match(help?.stdout ?? '', /^usage: npm /);
  });
}
