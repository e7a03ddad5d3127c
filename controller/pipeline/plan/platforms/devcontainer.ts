// Reads the ports that a devcontainer forwards: a weak hint at the port of the app.
import { readField, parseJson } from '../../manifest.ts';
import type { Tree } from '../../tree.ts';

/** The only port that is forwarded. */
export function forwardedPort(tree: Tree): { file: string; port: number } | undefined {
  const file = ['.devcontainer/devcontainer.json', '.devcontainer.json'].find((name) => tree.has(name));
  if (file === undefined) return undefined;
  // Comments are usual there; one in a text with // would only lose the hint.
  const plain = (tree.text(file, 64 * 1024) ?? '')
    .replaceAll(/^[ \t]{0,40}\/\/.*$/gm, '')
    .replaceAll(/,(\s{0,100}[}\]])/g, '$1');
  const ports = readField(parseJson(plain), 'forwardPorts');
  const port: unknown = Array.isArray(ports) && ports.length === 1 ? ports[0] : undefined;
  return typeof port === 'number' && port > 0 && port <= 65_535 ? { file, port } : undefined;
}
