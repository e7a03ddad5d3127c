// Rule: the Dockerfile is a regular file that requests no other builder.
import { posix } from 'node:path';
import type { Finding } from '../../../../crds/hosted-app.ts';
import { isAuthoredDockerfile } from '../../plan/dockerfile/text.ts';
import { keepHead, toOneLine } from '../../text.ts';
import type { Tree, TreeEntry } from '../../tree.ts';
import type { Rule } from '../rule.ts';

const maximumBytes = 512 * 1024;

export const dockerfile: Rule = {
  name: 'dockerfile',
  check({ tree, input }) {
    const { strategy, dockerfile: name } = input.build;
    const file = posix.join(input.path, name);
    const entry = resolveEntry(tree, file);
    if (strategy === 'dockerfile' && entry === undefined) {
      return [
        {
          rule: 'dockerfile/missing',
          severity: 'error',
          file,
          message: 'build.strategy is dockerfile, but this file does not exist.',
          fix: 'Add it, or set build.dockerfile (its path relative to source.path) or build.strategy: auto in moorage.yaml.',
        },
      ];
    }
    if (!isAuthoredDockerfile(tree.getSubtree(input.path), input.build) && strategy !== 'dockerfile') return [];
    if (entry?.kind !== 'file' || entry.bytes > maximumBytes) {
      return [
        {
          rule: 'dockerfile/not-a-file',
          severity: 'error',
          file,
          message: 'This is not a regular file of at most 512 KiB.',
          fix: 'Commit the Dockerfile itself at this path, not a link or a folder.',
        },
      ];
    }
    return checkSyntax(file, tree.readFile(entry.path) ?? '');
  },
};

/** Returns the file itself, or the repository file that it links to. */
function resolveEntry(tree: Tree, file: string): TreeEntry | undefined {
  const entry = tree.getEntry(file);
  if (entry?.kind !== 'symlink') return entry;
  const target = posix.join(posix.dirname(file), entry.target ?? '');
  const found = posix.isAbsolute(entry.target ?? '') ? undefined : tree.getEntry(target);
  return found?.kind === 'file' ? found : entry;
}

/** The first comment lines may name a frontend that parses the rest; only Docker's own is built in. */
function checkSyntax(file: string, text: string): Finding[] {
  for (const [index, line] of text
    .replace(/^\ufeff/, '')
    .split('\n', 50)
    .entries()) {
    const directive = /^\s*(?:#|\/\/)\s*([A-Za-z][A-Za-z0-9]*)\s*=\s*(.*)$/.exec(line.slice(0, 500));
    if (directive === null && !line.startsWith('#!')) return [];
    if (directive?.[1]?.toLowerCase() !== 'syntax') continue;
    const [image = ''] = (directive[2] ?? '').trim().split(/\s+/);
    if (/^(?:docker\.io\/)?docker\/dockerfile(?::[\w.-]+)?(?:@sha256:[0-9a-f]{64})?$/.test(image)) return [];
    return [
      {
        rule: 'dockerfile/syntax',
        severity: 'error',
        file,
        line: index + 1,
        message: `The Dockerfile requests the frontend ${keepHead(toOneLine(image), 120)}; only docker/dockerfile is available.`,
        fix: 'Use "# syntax=docker/dockerfile:1", or remove the line, and use only standard Dockerfile instructions.',
      },
    ];
  }
  return [];
}
