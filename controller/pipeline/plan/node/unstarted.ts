// Finds the server of a project whose pages alone would be served: half of an app, and its other half by no start script.
import type { Tree } from '../../tree.ts';
import type { NodeProject } from './project.ts';

export const servers = ['express', 'fastify', 'koa', 'hono', '@nestjs/core', '@hapi/hapi', 'polka'];

/** The library of a server that is among these packages. */
export function serverLibrary(names: ReadonlySet<string>): string | undefined {
  return servers.find((each) => names.has(each));
}

/** What says that there is a server, in words; undefined when nothing does. */
export function unstartedServer(tree: Tree, { runtime, scripts }: NodeProject): string | undefined {
  const library = serverLibrary(runtime);
  if (library !== undefined) return `${library} is among its packages`;
  const script = Object.keys(scripts).find((name) => /(?:^|:)(?:server|api|backend)$/.test(name));
  if (script !== undefined) return `the script "${script}" starts one for its developer`;
  const isFunction = (path: string): boolean =>
    /^(?:api|netlify\/functions)\/(?:[\w[\].-]{1,80}\/){0,3}[\w[\].-]{1,80}\.(?:[cm]?[jt]s|py|go)$/.test(path);
  if (['package.json', 'requirements.txt', 'pyproject.toml'].some((file) => tree.has(`api/${file}`))) return undefined;
  const called = tree.entries.find((each) => each.kind === 'file' && isFunction(each.path))?.path;
  return called === undefined ? undefined : `${called} is a function that another platform calls`;
}
