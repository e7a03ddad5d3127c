// Reads railway.json and railway.toml: start, what runs before it, health, and the Dockerfile.
import { parseJson, parseToml, text } from '../../manifest.ts';
import type { Tree } from '../../tree.ts';
import type { Declaration } from './declaration.ts';

export function railwayDeclaration(tree: Tree): Declaration | undefined {
  const file = ['railway.json', 'railway.toml'].find((name) => tree.has(name));
  if (file === undefined) return undefined;
  const content = tree.text(file);
  const parsed = file.endsWith('.json') ? parseJson(content) : parseToml(content);
  const deploy = (name: string): string | undefined => text(parsed, 'deploy', name)?.trim();
  const start = deploy('startCommand');
  const release = deploy('preDeployCommand') ?? deploy('releaseCommand');
  const healthPath = deploy('healthcheckPath');
  const dockerfile = text(parsed, 'build', 'dockerfilePath')?.replace(/^(?:\.?\/)+/, '');
  return {
    file,
    ...(start === undefined || start === '' ? {} : { start }),
    ...(release === undefined || release === '' ? {} : { release }),
    ...(healthPath?.startsWith('/') === true ? { healthPath } : {}),
    ...(dockerfile !== undefined && tree.has(dockerfile) ? { build: { path: '.', dockerfile } } : {}),
  };
}
