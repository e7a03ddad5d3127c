// Adds to the components of an app what the files of each folder imply, and lays those of moorage.yaml over those of other files.
import { posix } from 'node:path';
import { authorLimits, manifestFile } from '../../../../crds/app-manifest.ts';
import type { DeclaredComponent } from '../../../../crds/components.ts';
import type { Finding } from '../../../../crds/hosted-app.ts';
import { askedSecret } from '../../../../crds/values.ts';
import { omitUndefined } from '../../../../lib/values.ts';
import { parseYaml, readField } from '../../manifest.ts';
import type { Tree } from '../../tree.ts';
import { planners } from '../plan.ts';
import { addPrefix, readDockerfileVolumes } from './compose/volumes.ts';
import { createWarning, type Declaration, type DeclaredVariable, type DeclaredVolume } from './declaration.ts';
import { readGemfile } from './gemfile.ts';
import { readOwnSecrets } from './own-secrets.ts';

export interface Completion {
  readonly components: readonly DeclaredComponent[];
  /** What counts for all components: services, and variables that ask for a secret. */
  readonly declarations: readonly Declaration[];
  readonly findings: readonly Finding[];
}

/** Completes the components of a tree, whose paths are relative to `base`. */
export function completeComponents(tree: Tree, base: string, components: readonly DeclaredComponent[]): Completion {
  const results = components.map((each) => completeComponent(tree, base, each));
  const { list, findings } = limitVolumes(results.map(({ component }) => component));
  return { components: list, declarations: results.flatMap(({ declarations }) => declarations), findings };
}

function completeComponent(
  tree: Tree,
  base: string,
  component: DeclaredComponent,
): { component: DeclaredComponent; declarations: readonly Declaration[] } {
  // One that runs the image of another has its variables from the compose file or the author.
  if (component.image !== undefined) return { component, declarations: [] };
  const path = posix.join(base, component.path ?? '.');
  const below = tree.getSubtree(path);
  const read = [
    readOwnSecrets(below),
    readGemfile(below),
    ...Object.values(planners).map((planner) => planner.declareSettings?.(below)),
  ].filter((each) => each !== undefined);
  const env = new Map((component.env ?? []).map((each) => [each.name, each]));
  const added = read
    .flatMap((each) => each.env ?? [])
    .filter(({ name, value }) => !env.has(name) && value !== askedSecret);
  // References to services are checked where those of all files are known.
  const literal = added.filter(({ value }) => !value.includes('${{'));
  const volumes =
    component.volumes ??
    nameVolumes(component.name, [
      ...(read.find((each) => (each.volumes ?? []).length > 0)?.volumes ?? []),
      ...readDockerfileVolumes(below.readFile(component.build?.dockerfile ?? 'Dockerfile')),
    ]);
  return {
    component: omitUndefined({
      ...component,
      env: env.size + literal.length === 0 ? undefined : [...env.values(), ...removeDuplicates(literal)],
      volumes: volumes.length === 0 ? undefined : volumes,
    }),
    declarations: read.map(({ file, services = [], env: variables = [] }) => ({
      file: posix.join(path, file),
      services,
      env: variables.filter(({ value }) => value.includes('${{')),
    })),
  };
}

function removeDuplicates(variables: readonly DeclaredVariable[]): DeclaredVariable[] {
  return [...new Map(variables.toReversed().map((each) => [each.name, each])).values()];
}

/** Volumes of other components are other volumes, whatever the names of their folders. */
function nameVolumes(component: string, volumes: readonly DeclaredVolume[]): DeclaredVolume[] {
  return volumes
    .filter(({ path }, index) => volumes.findIndex((each) => each.path === path) === index)
    .map(({ name, path }) => ({ name: addPrefix(component, name), path }));
}

function limitVolumes(components: readonly DeclaredComponent[]): {
  list: readonly DeclaredComponent[];
  findings: Finding[];
} {
  const names = [...new Set(components.flatMap(({ volumes = [] }) => volumes.map(({ name }) => name)))];
  const lost = names.slice(authorLimits.volumes.count);
  if (lost.length === 0) return { list: components, findings: [] };
  const isKept = ({ name }: { readonly name: string }): boolean => !lost.includes(name);
  return {
    list: components.map((each) => omitUndefined({ ...each, volumes: each.volumes?.filter(isKept) })),
    findings: [
      createWarning(
        'data/too-many-volumes',
        manifestFile,
        `The components declare ${names.length} volumes; ${authorLimits.volumes.count} get a disk. What is written to ${lost.slice(0, 5).join(', ')} does not last.`,
        'Choose the folders that have to last with volumes of the components in moorage.yaml.',
      ),
    ],
  };
}

/**
 * Lays the components of moorage.yaml over those with the same names in other files: each has the fields that the
 * author wrote, and those of the other file for the rest. The author's list says which components there are, and their
 * routes.
 */
export function mergeComponents(
  tree: Tree,
  own: readonly DeclaredComponent[],
  found: readonly DeclaredComponent[],
): readonly DeclaredComponent[] {
  const written = readWrittenFields(tree);
  return own.map((each) => {
    const below = found.find(({ name }) => name === each.name);
    if (below === undefined) return each;
    const fields = written.get(each.name) ?? [];
    const chosen = Object.fromEntries(Object.entries(each).filter(([name]) => fields.includes(name)));
    // Exactly one of the author's list has no route: that is the one at /.
    const { image, path, build, route: _, ...rest } = below;
    const isElsewhere = ['image', 'path'].some((name) => fields.includes(name));
    const source = isElsewhere
      ? {}
      : fields.includes('build')
        ? { path, build: mergeBuild(build, each.build) }
        : { image, path, build };
    return { ...rest, ...omitUndefined({ ...chosen, ...source }), name: each.name };
  });
}

/** Another way to build takes the place of a Dockerfile. The addresses of other components stay. */
function mergeBuild(found: DeclaredComponent['build'], own: DeclaredComponent['build']): DeclaredComponent['build'] {
  const isPlanned = own?.strategy !== undefined && !['auto', 'dockerfile'].includes(own.strategy);
  const { env, ...authored } = found ?? {};
  const merged = omitUndefined({ ...(isPlanned ? {} : authored), ...own });
  const names = new Set((own?.env ?? []).map(({ name }) => name));
  const variables = [...(env ?? []).filter(({ name }) => !names.has(name)), ...(own?.env ?? [])];
  return variables.length === 0 ? merged : { ...merged, env: variables };
}

/** The fields of each component in the author's file, without defaults. */
function readWrittenFields(tree: Tree): Map<string, readonly string[]> {
  const list = readField(parseYaml(tree.readFile(manifestFile)), 'components');
  const items: unknown[] = Array.isArray(list) ? list : [];
  return new Map(
    items.flatMap((item): [string, string[]][] => {
      const name = readField(item, 'name');
      return typeof item === 'object' && item !== null && typeof name === 'string' ? [[name, Object.keys(item)]] : [];
    }),
  );
}
