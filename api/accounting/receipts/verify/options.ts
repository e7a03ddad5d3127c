// The command line of `npm run verify`.
import { resolve } from 'node:path';
import { readCommandLine, UsageError } from '../../../../lib/command-line.ts';

const usage = `usage: npm run verify -- FILE… [--keys FILE] [--days FILE] [--issuer URL]
       npm run verify -- --database URL [FILE…] (--keys FILE | --issuer URL)

  FILE            a signed document: charges, a statement, days, a checkpoint
  --keys FILE     the public keys, as /.well-known/jwks.json has them; fetched from the issuer if left out
  --days FILE     the sealed days, as /api/ledger/days has them; fetched from the issuer if left out
  --issuer URL    address of the installation: a document of another one is refused
  --database URL  check every link, day and signature in this PostgreSQL (or pglite:FOLDER). Days and checkpoints among
                  the files are what it has to have grown out of. Keys: --keys, --issuer, or MOORAGE_RECEIPT_KEY

exit codes: 0 all is right, 1 something is not, 64 wrong usage`;

export interface VerifyOptions {
  readonly files: readonly string[];
  readonly keys: string | undefined;
  readonly days: string | undefined;
  readonly issuer: string | undefined;
  readonly database: string | undefined;
}

export function readArguments(args?: readonly string[]): VerifyOptions {
  const text = { type: 'string' } as const;
  const options = { keys: text, days: text, issuer: text, database: text };
  return readCommandLine(
    { usage, options, positionals: 1_000 },
    ({ values, positionals }) => {
      if (positionals.length === 0 && values.database === undefined)
        throw new UsageError('a file to verify or --database is required');
      return {
        files: positionals.map(pathOf),
        keys: values.keys === undefined ? undefined : pathOf(values.keys),
        days: values.days === undefined ? undefined : pathOf(values.days),
        issuer: values.issuer?.replace(/\/+$/, ''),
        database: values.database,
      };
    },
    args,
  );
}

/** Npm runs scripts in the project's root; a relative path starts at the folder in which npm was called. */
function pathOf(file: string): string {
  return resolve(process.env['INIT_CWD'] ?? '.', file);
}
