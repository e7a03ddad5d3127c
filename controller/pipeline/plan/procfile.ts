// Reads the start command of a Procfile.
import type { Tree } from '../tree.ts';

/** The `web` command as a shell line; undefined when there is none. */
export function procfile(tree: Tree): string | undefined {
  const command = /^web[ \t]*:[ \t]*(\S[^\n]{0,2000})/m.exec(tree.text('Procfile', 64 * 1024) ?? '')?.[1]?.trim();
  if (command === undefined) return undefined;
  // exec makes the app the one that gets the signals; a line of several commands keeps its shell.
  return /[;&|<>()`]|^(?:exec|cd|export)\b|^\w+=/.test(command) ? command : `exec ${command}`;
}
