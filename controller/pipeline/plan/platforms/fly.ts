// Reads fly.toml: process, port, variables, disks, Dockerfile and release command.
import { omitUndefined } from '../../../../lib/values.ts';
import { readField, readKeys, parseToml, readText } from '../../manifest.ts';
import type { Tree } from '../../tree.ts';
import type { Declaration, DeclaredBuild, DeclaredVariable, DeclaredVolume } from './declaration.ts';

export function readFly(tree: Tree): Declaration | undefined {
  const file = 'fly.toml';
  const parsed = parseToml(tree.text(file));
  if (parsed === undefined) return undefined;
  return omitUndefined({
    file,
    start: readText(parsed, 'processes', 'app') ?? readText(parsed, 'processes', 'web'),
    release: readText(parsed, 'deploy', 'release_command'),
    port: readPort(parsed),
    env: readKeys(parsed, 'env').flatMap((name): DeclaredVariable[] => {
      const value = readField(parsed, 'env', name);
      return ['string', 'number', 'boolean'].includes(typeof value) ? [{ name, value: String(value) }] : [];
    }),
    volumes: readDisks(parsed),
    build: readBuild(parsed, tree),
  });
}

function readPort(parsed: unknown): number | undefined {
  const port =
    readField(parsed, 'http_service', 'internal_port') ?? readField(readFirst(parsed, 'services'), 'internal_port');
  return typeof port === 'number' && Number.isInteger(port) && port > 0 && port <= 65_535 ? port : undefined;
}

function readBuild(parsed: unknown, tree: Tree): DeclaredBuild | undefined {
  const dockerfile = readText(parsed, 'build', 'dockerfile')?.replace(/^(?:\.?\/)+/, '');
  if (dockerfile === undefined || !tree.has(dockerfile)) return undefined;
  return omitUndefined({ path: '.', dockerfile, target: readText(parsed, 'build', 'build-target') });
}

function readDisks(parsed: unknown): DeclaredVolume[] {
  const given = readField(parsed, 'mounts') ?? readField(parsed, 'mount');
  const each: unknown[] = Array.isArray(given) ? given : [given];
  return each.flatMap((mount) => {
    const path = readText(mount, 'destination');
    return path === undefined ? [] : [{ name: 'data', path }];
  });
}

function readFirst(parsed: unknown, name: string): unknown {
  const given = readField(parsed, name);
  return Array.isArray(given) ? (given[0] as unknown) : given;
}
