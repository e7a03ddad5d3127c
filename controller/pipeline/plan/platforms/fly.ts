// Reads fly.toml: process, port, variables, disks, the Dockerfile, and what runs at a release.
import { present } from '../../../../lib/present.ts';
import { field, keys, parseToml, text } from '../../manifest.ts';
import type { Tree } from '../../tree.ts';
import type { Declaration, DeclaredBuild, DeclaredVariable, DeclaredVolume } from './declaration.ts';

export function flyDeclaration(tree: Tree): Declaration | undefined {
  const file = 'fly.toml';
  const parsed = parseToml(tree.text(file));
  if (parsed === undefined) return undefined;
  return present({
    file,
    start: text(parsed, 'processes', 'app') ?? text(parsed, 'processes', 'web'),
    release: text(parsed, 'deploy', 'release_command'),
    port: portOf(parsed),
    env: keys(parsed, 'env').flatMap((name): DeclaredVariable[] => {
      const value = field(parsed, 'env', name);
      return ['string', 'number', 'boolean'].includes(typeof value) ? [{ name, value: String(value) }] : [];
    }),
    volumes: disksOf(parsed),
    build: buildOf(parsed, tree),
  });
}

function portOf(parsed: unknown): number | undefined {
  const port = field(parsed, 'http_service', 'internal_port') ?? field(first(parsed, 'services'), 'internal_port');
  return typeof port === 'number' && Number.isInteger(port) && port > 0 && port <= 65_535 ? port : undefined;
}

function buildOf(parsed: unknown, tree: Tree): DeclaredBuild | undefined {
  const dockerfile = text(parsed, 'build', 'dockerfile')?.replace(/^(?:\.?\/)+/, '');
  if (dockerfile === undefined || !tree.has(dockerfile)) return undefined;
  return present({ path: '.', dockerfile, target: text(parsed, 'build', 'build-target') });
}

function disksOf(parsed: unknown): DeclaredVolume[] {
  const given = field(parsed, 'mounts') ?? field(parsed, 'mount');
  const each: unknown[] = Array.isArray(given) ? given : [given];
  return each.flatMap((mount) => {
    const path = text(mount, 'destination');
    return path === undefined ? [] : [{ name: 'data', path }];
  });
}

function first(parsed: unknown, name: string): unknown {
  const given = field(parsed, name);
  return Array.isArray(given) ? (given[0] as unknown) : given;
}
