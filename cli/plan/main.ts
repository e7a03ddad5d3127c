// `npm run plan`: reports how a folder would be built, and why, without a cluster.
import { statSync } from 'node:fs';
import { resolve } from 'node:path';
import { type PackageRegistry, packageRegistries } from '../../lib/repository.ts';
import { readCommandLine, UsageError } from '../../lib/command-line.ts';
import { planFolder, formatJson, formatText } from './plan-folder.ts';

const usage = `usage: npm run plan -- FOLDER [--package npm|pypi] [--json]

  FOLDER     the folder to plan, in its current state
  --package  the folder is the content of a package that is published at this registry
  --json     print one JSON object: strategy, framework, port, reason, path, findings, components, dockerfile

exit codes: 0 planned, 1 rejected, 64 wrong usage`;

function readRequest(): { folder: string; registry: PackageRegistry | undefined; json: boolean } {
  const options = { package: { type: 'string' }, json: { type: 'boolean', default: false } } as const;
  return readCommandLine({ usage, options, positionals: 1 }, ({ values, positionals: [folder] }) => {
    if (folder === undefined) throw new UsageError('a folder to plan is required');
    // npm runs scripts in the project's root; a relative path starts at the folder in which npm was called.
    const path = resolve(process.env['INIT_CWD'] ?? '.', folder);
    if (statSync(path, { throwIfNoEntry: false })?.isDirectory() !== true)
      throw new UsageError(`"${folder}" is not a folder`);
    const registry = packageRegistries.find((each) => each === values.package);
    if (values.package !== undefined && registry === undefined)
      throw new UsageError(`--package is one of ${packageRegistries.join(', ')}`);
    return { folder: path, registry, json: values.json };
  });
}

const { folder, registry, json } = readRequest();
const planned = planFolder(folder, registry);
process.stdout.write(json ? formatJson(planned) : formatText(planned));
process.exitCode = planned.refused ? 1 : 0;
