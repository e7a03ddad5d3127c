// `npm run submit`: submits a folder or a repository, and follows it until it is live or rejected.
import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import { readCommandLine, UsageError } from '../../lib/command-line.ts';
import { createApiClient } from './api-client.ts';
import { Fault, readInstallation } from './installation.ts';
import { createOutput } from './output.ts';
import { submit, type Request } from './submit.ts';

const usage = `usage: npm run submit -- FOLDER | OWNER/NAME | URL | PACKAGE [--name NAME]

  FOLDER        push the folder in its current state to the cluster's own git server, and submit it from there
  OWNER/NAME    submit a repository on the first of the allowed git hosts
  URL           submit a repository on any of them
  PACKAGE       submit a published package: npm:@scope/name, npm:name or pypi:name
  --name NAME   name of the repository that a folder is pushed to (default: the folder's name)

exit codes: 0 live, 1 rejected, 2 not submitted, 64 wrong usage`;

const write = (line: string): void => {
  process.stdout.write(`${line}\n`);
};

async function main(): Promise<number> {
  const request = readRequest();
  const installation = await readInstallation();
  const api = createApiClient(installation);
  try {
    return await submit(request, { installation, api, output: createOutput(write) });
  } finally {
    await api.close();
  }
}

function readRequest(): Request {
  const options = { name: { type: 'string' } } as const;
  return readCommandLine({ usage, options, positionals: 1 }, ({ values, positionals: [target] }) => {
    if (target === undefined) throw new UsageError('a folder or a repository to submit is required');
    return { what: fromCallersFolder(target), name: values.name };
  });
}

/** npm runs scripts in the project's root; a relative path starts at the folder in which npm was called. */
function fromCallersFolder(target: string): string {
  const path = resolve(process.env['INIT_CWD'] ?? '.', target);
  return existsSync(path) ? path : target;
}

try {
  process.exitCode = await main();
} catch (error) {
  if (!(error instanceof Fault)) throw error;
  process.stderr.write(`${error.message}\n`);
  process.exitCode = 2;
}
