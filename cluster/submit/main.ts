// `npm run submit -- ./folder [--name NAME]`: exit code 0 when live, 1 when rejected, 2 when it could not be submitted.
import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { createApiClient } from './api-client.ts';
import { Fault } from './fault.ts';
import { readInstallation } from './installation.ts';
import { createOutput } from './output.ts';
import { submit, type Request } from './submit.ts';

const usage = `usage: npm run submit -- FOLDER | OWNER/NAME | URL [--name NAME]

  FOLDER        is pushed to the cluster's own git server as it is now, and submitted from there
  OWNER/NAME    a repository on the first of the allowed git hosts
  URL           a repository on any of them
  --name NAME   name of the repository that a folder becomes (default: the folder's name)`;

const write = (line: string): void => {
  process.stdout.write(`${line}\n`);
};

async function main(): Promise<number> {
  const request = readArguments();
  if (request === undefined) {
    write(usage);
    return 0;
  }
  const installation = await readInstallation();
  const api = createApiClient(installation);
  try {
    return await submit(request, { installation, api, output: createOutput(write) });
  } finally {
    await api.close();
  }
}

function readArguments(): Request | undefined {
  try {
    const { values, positionals } = parseArgs({
      allowPositionals: true,
      options: { name: { type: 'string' }, help: { type: 'boolean', short: 'h' } },
    });
    if (values.help === true) return undefined;
    const [what, ...more] = positionals;
    if (what === undefined || more.length > 0)
      throw new Error(what === undefined ? 'nothing to submit was named' : `one thing at a time: ${more.join(' ')}`);
    return { what: fromWhereItWasTyped(what), name: values.name };
  } catch (error) {
    throw new Fault(`${error instanceof Error ? error.message : String(error)}\n\n${usage}`);
  }
}

/** npm runs scripts in the project's root; a folder is meant from where the person stands. */
function fromWhereItWasTyped(what: string): string {
  const path = resolve(process.env['INIT_CWD'] ?? '.', what);
  return existsSync(path) ? path : what;
}

try {
  process.exitCode = await main();
} catch (error) {
  if (!(error instanceof Fault)) throw error;
  process.stderr.write(`${error.message}\n`);
  process.exitCode = 2;
}
