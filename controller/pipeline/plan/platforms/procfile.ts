// Reads a Procfile (Heroku and others): the process `web`, and what runs before it at a release.
import type { Tree } from '../../tree.ts';
import type { Declaration } from './declaration.ts';
import { warning } from './declaration.ts';

const line = /^([A-Za-z0-9_-]{1,50})[ \t]{0,9}:[ \t]{0,9}(\S[^\n]{0,2000})$/gm;

export function procfileDeclaration(tree: Tree): Declaration | undefined {
  const file = 'Procfile';
  const processes = new Map(
    [...(tree.text(file, 64 * 1024) ?? '').replaceAll('\r', '').matchAll(line)].map(([, name = '', command = '']) => [
      name,
      command.trim(),
    ]),
  );
  const start = processes.get('web');
  if (start === undefined) return undefined;
  const release = processes.get('release');
  const others = [...processes.keys()].filter((name) => name !== 'web' && name !== 'release');
  return {
    file,
    start,
    ...(release === undefined ? {} : { release }),
    findings:
      others.length === 0
        ? []
        : [
            warning(
              'procfile/not-run',
              file,
              `Only the process web is run; not ${others.slice(0, 6).join(', ')}.`,
              'If the app needs another process, start it in the command of web, like "worker & exec server".',
            ),
          ],
  };
}
