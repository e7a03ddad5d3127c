// What a person sees: help, tables on terminals of different widths, colours, and completion scripts that shells accept.
import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import { afterAll, test } from 'vitest';
import { commands } from '../../../../cli/moorage/commands.ts';
import { renderCompletion } from '../../../../cli/moorage/completion.ts';
import { Terminal } from '../../../../cli/moorage/output.ts';
import { renderHelp } from '../../../../cli/moorage/program.ts';
import { MoorageHome } from '../../../support/moorage-program.ts';

const home = new MoorageHome();
afterAll(() => {
  home.remove();
});

const rebuildHelp = `Build the newest commit again.

usage: moorage rebuild [APP] [--no-cache] [-a, --app APP]

Arguments
  APP  name of an app, OWNER/NAME or the address of its repository (default: the repository of this
       folder)

Options
  --no-cache      run every step of the build, and take none from an earlier one
  -a, --app APP   the same as the argument APP
  --api URL       address of the installation (default: MOORAGE_API, then the last login)
  --ca-file FILE  certificate authority to trust (default: MOORAGE_CA, then that of the local
                  cluster)
  --json          print JSON; one document per line if the command follows something
  -h, --help      print this help

Examples
  $ moorage rebuild
  $ moorage rebuild octo/hello --no-cache
`;

test('--help of a command has its usage, options and examples', async () => {
  for (const args of [
    ['rebuild', '--help'],
    ['rebuild', 'hello', '-h'],
    ['help', 'rebuild'],
  ])
    assert.deepEqual(await home.run(args), { code: 0, stdout: rebuildHelp, stderr: '' });
});

test('--help lists every command once, and a family lists its own', async () => {
  const { code, stdout } = await home.run(['--help']);
  assert.equal(code, 0);
  for (const { name, summary } of commands)
    assert.equal(
      stdout.split('\n').filter((line) => line.startsWith(`  ${name} `) && line.endsWith(summary)).length,
      1,
      name,
    );
  assert.deepEqual(await home.run([]), { code: 2, stdout, stderr: '' });
  assert.equal(
    (await home.run(['secrets', '--help'])).stdout,
    `usage: moorage secrets COMMAND [ARGUMENTS] [OPTIONS]

  secrets list   List the names of the secrets of an app
  secrets set    Set a secret, which the app reads as an environment variable
  secrets unset  Remove a secret

\`moorage secrets COMMAND --help\` has examples.
`,
  );
});

test.each(commands.map((command) => [command.name, command] as const))(
  '%s: --json, examples and help of at most 100 columns',
  (_name, command) => {
    const help = renderHelp(command);
    assert.match(help, / {2}--json /);
    assert.ok(command.examples.length > 0);
    assert.doesNotMatch(command.summary, /\.$/);
    const [, options = ''] = /\nOptions\n([^]*)\n\nExamples/.exec(help) ?? [];
    for (const line of options.split('\n')) assert.ok(line.length <= 100, line);
    for (const example of command.examples)
      assert.ok(`moorage ${example}`.includes(`moorage ${command.name}`), example);
  },
);

function createTerminal(isTTY: boolean, columns: number, environment: NodeJS.ProcessEnv = {}): Terminal {
  const output = { isTTY, columns, write: () => true };
  const stdin = Object.assign(new PassThrough(), { isTTY });
  return new Terminal({ stdin, stdout: output, stderr: output }, environment, false);
}

const rows = [
  { name: 'GREETING', value: 'a long value that does not fit' },
  { name: 'B', value: '\u001b[2Jclear' },
];

test('a table is cut to the width of a terminal, and not in a pipe', () => {
  assert.deepEqual(createTerminal(false, 30).formatTable(rows, 'none'), [
    'NAME      VALUE',
    'GREETING  a long value that does not fit',
    'B         clear',
  ]);
  assert.deepEqual(createTerminal(true, 30, { NO_COLOR: '1' }).formatTable(rows, 'none'), [
    'NAME      VALUE',
    'GREETING  a long value that d…',
    'B         clear',
  ]);
  for (const columns of [5, 20, 30, 40])
    for (const line of createTerminal(true, columns, { NO_COLOR: '1' }).formatTable(rows, 'none'))
      assert.ok(line.length <= Math.max(columns, 18), `${columns}: ${line}`);
  assert.deepEqual(createTerminal(true, 30).formatTable([], 'none'), ['none']);
});

test('colours are for terminals without NO_COLOR', () => {
  assert.equal(createTerminal(true, 80).style('red', 'x'), '\u001b[31mx\u001b[39m');
  for (const terminal of [
    createTerminal(false, 80),
    createTerminal(true, 80, { NO_COLOR: '1' }),
    createTerminal(true, 80, { TERM: 'dumb' }),
  ])
    assert.equal(terminal.style('red', 'x'), 'x');
});

// Completion

const folder = mkdtempSync(join(tmpdir(), 'moorage-completion-'));
afterAll(() => {
  rmSync(folder, { recursive: true, force: true });
});

for (const shell of ['bash', 'zsh', 'fish'] as const) {
  const isInstalled = spawnSync(shell, ['-c', 'true']).status === 0;
  test.skipIf(!isInstalled)(`${shell} accepts its completion script`, () => {
    const file = join(folder, shell);
    writeFileSync(file, renderCompletion(shell, commands));
    const { status, stderr } = spawnSync(shell, ['-n', file], { encoding: 'utf8' });
    assert.deepEqual([status, stderr], [0, '']);
  });

  test(`the script for ${shell} has every command and option`, async () => {
    const { code, stdout } = await home.run(['completion', shell]);
    assert.equal(code, 0);
    for (const { name, options } of commands) {
      for (const word of name.split(' ')) assert.ok(stdout.includes(word), word);
      for (const option of Object.keys(options))
        assert.ok(stdout.includes(`${shell === 'fish' ? '-l ' : '--'}${option}`), option);
    }
  });
}

test.each([
  ['moorage re', 'rebuild releases rename restart restore resume'],
  ['moorage secrets ', 'list set unset'],
  ['moorage secrets set --ap', '--app --api'],
  ['moorage rebuild hello --no', '--no-cache'],
  ['moorage settings --unset re', 'replicas'],
  ['moorage completion ', 'bash zsh fish'],
  ['moorage plan ', ''],
])('bash completes "%s"', (line, expected) => {
  const words = line.split(' ');
  const script = `${renderCompletion('bash', commands)}
COMP_WORDS=(${words.map((word) => `'${word}'`).join(' ')}); COMP_CWORD=${words.length - 1}; _moorage; echo "\${COMPREPLY[*]}"`;
  const completed = execFileSync('bash', ['-c', script], { encoding: 'utf8' }).trim();
  assert.deepEqual(completed.split(' ').sort(), expected.split(' ').sort());
});
