// `npm run plan`: reports how a folder would be built, and why, without a cluster.
import { statSync } from 'node:fs';
import { resolve } from 'node:path';
import { readCommandLine, UsageError } from '../../lib/command-line.ts';
import { planFolder, formatJson, formatText } from './plan-folder.ts';

const usage = `usage: npm run plan -- FOLDER [--json]

  FOLDER   the folder to plan, in its current state
  --json   print one JSON object: strategy, framework, port, reason, path, findings, components, dockerfile

exit codes: 0 planned, 1 rejected, 64 wrong usage`;

function readRequest(): { folder: string; json: boolean } {
  const options = { json: { type: 'boolean', default: false } } as const;
  return readCommandLine({ usage, options, positionals: 1 }, ({ values, positionals: [folder] }) => {
    if (folder === undefined) throw new UsageError('a folder to plan is required');
    // npm runs scripts in the project's root; a relative path starts at the folder in which npm was called.
    const path = resolve(process.env['INIT_CWD'] ?? '.', folder);
    if (statSync(path, { throwIfNoEntry: false })?.isDirectory() !== true)
      throw new UsageError(`"${folder}" is not a folder`);
    return { folder: path, json: values.json };
  });
}

const { folder, json } = readRequest();
const planned = planFolder(folder);
process.stdout.write(json ? formatJson(planned) : formatText(planned));
process.exitCode = planned.refused ? 1 : 0;
