// Reads railway.json and railway.toml: start, what runs before it, health, and the Dockerfile.
import { present } from '../../../../lib/present.ts';
import { parseJson, parseToml, readText } from '../../manifest.ts';
import type { Tree } from '../../tree.ts';
import type { Declaration } from './declaration.ts';

export function railwayDeclaration(tree: Tree): Declaration | undefined {
  const file = ['railway.json', 'railway.toml'].find((name) => tree.has(name));
  if (file === undefined) return undefined;
  const content = tree.text(file);
  const parsed = file.endsWith('.json') ? parseJson(content) : parseToml(content);
  const said = (section: string, pattern: RegExp, ...names: readonly string[]): string | undefined =>
    names
      .map((name) => readText(parsed, section, name)?.trim())
      .find((value) => value !== undefined && pattern.test(value));
  const dockerfile = said('build', /./, 'dockerfilePath')?.replace(/^(?:\.?\/)+/, '');
  return present({
    file,
    start: said('deploy', /./, 'startCommand'),
    release: said('deploy', /./, 'preDeployCommand', 'releaseCommand'),
    healthPath: said('deploy', /^\//, 'healthcheckPath'),
    build: dockerfile !== undefined && tree.has(dockerfile) ? { path: '.', dockerfile } : undefined,
  });
}
