// Reads the steps of docs/tutorial.md, runs them in a shell and compares their output with the page.
import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { execa } from 'execa';

export const root = join(import.meta.dirname, '..', '..');

export interface TutorialStep {
  /** What a reader pastes into a shell. */
  readonly command: string;
  /** What the page says that it prints; `…` stands for any text. */
  readonly output: string | undefined;
}

/** The shell blocks of the tutorial in order, each with the output block that follows it. */
export function readTutorial(): readonly TutorialStep[] {
  const text = readFileSync(join(root, 'docs', 'tutorial.md'), 'utf8');
  const blocks = [...text.matchAll(/^```(sh|text)\n([\s\S]*?)^```$/gm)].map(([, kind = '', body = '']) => ({
    kind,
    body,
  }));
  return blocks.flatMap(({ kind, body }, index) => {
    if (kind !== 'sh') return [];
    const next = blocks[index + 1];
    return [{ command: body, output: next?.kind === 'text' ? next.body : undefined }];
  });
}

/** Whether the page says that the command fails. */
export function isRejected({ output = '' }: TutorialStep): boolean {
  return output.includes('rejected');
}

/** Every line of the page must appear in the output, in the same order. */
export function assertOutput({ command, output = '' }: TutorialStep, actual: string): void {
  const lines = actual.split('\n').map((line) => line.trim());
  let from = 0;
  for (const expected of output.split('\n').filter((line) => line.replaceAll('…', '').trim() !== '')) {
    const found = lines.findIndex((line, index) => index >= from && matches(line, expected.trim()));
    assert.ok(found >= 0, `"${expected}" is not in the output of\n${command}\nwhich is\n${actual}`);
    from = found + 1;
  }
}

/** `…` in the pattern stands for any text. */
function matches(line: string, pattern: string): boolean {
  const parts = pattern.split('…');
  if (parts.length === 1) return line === pattern;
  const [first = '', ...others] = parts;
  const last = others.pop() ?? '';
  let at = first.length;
  for (const part of others) {
    const found = line.indexOf(part, at);
    if (found < 0) return false;
    at = found + part.length;
  }
  return line.startsWith(first) && line.endsWith(last) && line.length - last.length >= at;
}

/** A home folder for one reader of the tutorial. */
export interface TutorialHome {
  readonly folder: string;
  /** Runs a block as a reader would: in the checkout, stopping at the first command that fails. */
  run(command: string): Promise<{ readonly exitCode: number | undefined; readonly all: string }>;
  remove(): void;
}

export function createTutorialHome(): TutorialHome {
  const folder = mkdtempSync(join(tmpdir(), 'moorage-tutorial-'));
  // Without a terminal, curl would draw its progress into the output.
  writeFileSync(join(folder, '.curlrc'), 'silent\nshow-error\n');
  return {
    folder,
    async run(command) {
      const { exitCode, all } = await execa('bash', ['-e', '-c', command], {
        cwd: root,
        env: { HOME: folder, npm_config_loglevel: 'silent' },
        all: true,
        reject: false,
        stdin: 'ignore',
        timeout: 1_100_000,
      });
      return { exitCode, all };
    },
    remove() {
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
