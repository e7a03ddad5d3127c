// Reads a compose file: which image is the app, how it starts, and which backing services it needs.
import type { Tree } from '../../../tree.ts';
import { findWholeDockerfile } from '../../dockerfile/find.ts';
import type { Declaration } from '../declaration.ts';
import { type ChoiceOptions, chooseServices, toBackingServices } from './services.ts';
import { declareComponents } from './components.ts';
import {
  addFileVariables,
  addImageUser,
  buildEnvironment,
  readSampleValues,
  reportEnvironment,
} from './environment.ts';
import { resolveBuild, resolveStart } from './process.ts';
import { readCompose, readComposeBelow } from './read.ts';
import { findDisks } from './volumes.ts';

/** Returns undefined if there is no compose file, or it declares nothing useful. */
export function declareCompose(tree: Tree, options: ChoiceOptions): Declaration | undefined {
  const isOpen = options.isOneProcess !== true && options.path === undefined;
  const compose = readCompose(tree) ?? (isOpen ? readComposeBelow(tree) : undefined);
  if (compose === undefined) return undefined;
  const { file } = compose;
  const { app, knownServices, findings } = chooseServices(compose, {
    ...options,
    findWhole: (folders) => findWholeDockerfile(tree, folders),
  });
  const lookup = readSampleValues(tree.getSubtree(compose.folder));
  const apps = compose.services
    .filter((each) => !knownServices.includes(each))
    .map((each) => addFileVariables(each, tree, lookup));
  const complete = knownServices.map((each) => addImageUser(addFileVariables(each, tree, lookup), apps, lookup));
  const backingServices = toBackingServices(file, complete, lookup);
  const services = backingServices.services.length === 0 ? {} : { services: [...backingServices.services] };
  const several =
    options.isOneProcess === true
      ? undefined
      : declareComponents({ compose, knownServices, databases: backingServices, tree, lookup });
  if (several !== undefined)
    return { file, ...services, ...several, findings: [...several.findings, ...backingServices.findings] };
  if (app === undefined) return { file, ...services, findings: [...findings, ...backingServices.findings] };
  const environment = buildEnvironment(app, tree, backingServices, lookup);
  const disks = findDisks(file, app, tree, lookup);
  const build = resolveBuild(file, app, tree, lookup);
  const start = resolveStart(file, app, tree, lookup, build.build);
  return {
    file,
    ...services,
    ...start.start,
    ...(build.build === undefined ? {} : { build: build.build }),
    env: environment.env,
    volumes: disks.volumes.map(({ name, path }) => ({ name, path })),
    findings: [
      ...findings,
      ...build.findings,
      ...start.findings,
      ...backingServices.findings,
      ...reportEnvironment(file, [environment]),
      ...disks.findings,
    ],
  };
}
