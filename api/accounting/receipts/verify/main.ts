// `npm run verify`, and `moorage verify` without its database: verifies signed documents, and the database that they come from.
import { resolve } from 'node:path';
import { z } from 'zod';
import { readCommandLine, UsageError } from '../../../../lib/command-line.ts';
import { openDatabase } from '../../../billing/index.ts';
import { readReceiptSettings } from '../config.ts';
import type { KeySet } from '../format/signature.ts';
import { verifyDocument } from '../format/verify-document.ts';
import { EvidenceError, computeLastDueDay, readDays, readJson, readKeys } from './evidence.ts';
import { verifyRecord } from './record.ts';
import { audit } from './verify-queries.ts';

const usage = `usage: npm run verify -- FILE… [--keys FILE] [--days FILE] [--issuer URL]
       npm run verify -- --database URL [FILE…] (--keys FILE | --issuer URL)

  FILE            a signed document: charges, a statement, days, a checkpoint
  --keys FILE     the public keys, as /.well-known/jwks.json has them; fetched from the issuer if left out
  --days FILE     the sealed days, as /api/ledger/days has them; fetched from the issuer if left out
  --issuer URL    address of the installation: a document of another one is refused
  --database URL  check every link, day and signature in this PostgreSQL (or pglite:FOLDER). Days and checkpoints among
                  the files are what it has to have grown out of. Keys: --keys, --issuer, or MOORAGE_RECEIPT_KEY

exit codes: 0 all is right, 1 something is not, 64 wrong usage`;

interface VerifyOptions {
  readonly files: readonly string[];
  readonly keys: string | undefined;
  readonly days: string | undefined;
  readonly issuer: string | undefined;
  readonly database: string | undefined;
}

/** If a record is corrupt, the first findings are enough. */
const maxFindings = 200;

type FileOptions = Omit<VerifyOptions, 'database'>;
type PrintLine = (line: string) => void;

if (import.meta.main) {
  const options = readArguments();
  try {
    const findingCount =
      options.database === undefined
        ? await verifyFiles(options, printLine)
        : await checkDatabase(options.database, options);
    process.exitCode = findingCount === 0 ? 0 : 1;
  } catch (error) {
    if (!(error instanceof EvidenceError)) throw error;
    printLine(error.message);
    process.exitCode = 1;
  }
}

/**
 * Verifies documents, prints what was found, and returns the number of findings. A file that cannot be checked is a finding,
 * and does not keep the others from being checked.
 */
export async function verifyFiles({ files, ...from }: FileOptions, printLine: PrintLine): Promise<number> {
  let findingCount = 0;
  for (const file of files) {
    try {
      findingCount += await checkFile(file, from, printLine);
    } catch (error) {
      if (!(error instanceof EvidenceError)) throw error;
      printLine(error.message);
      findingCount += 1;
    }
  }
  return findingCount;
}

async function checkFile(file: string, from: Omit<FileOptions, 'files'>, printLine: PrintLine): Promise<number> {
  const document = readJson(file);
  const issuer = z.object({ issuer: z.string() }).safeParse(document).data?.issuer ?? '';
  if (from.issuer !== undefined && issuer !== from.issuer) {
    printLine(`${file}: its issuer is ${issuer}, not ${from.issuer}`);
    return 1;
  }
  const keys = await readKeys(from.keys, issuer);
  const days = await readDays(document, { file: from.days, issuer, keys });
  const { findings, lines, proven, unbound } = await verifyDocument(document, { keys, days, due: computeLastDueDay() });
  printFindings(
    findings.map((finding) => `${file}: ${finding}`),
    printLine,
  );
  const earlier =
    unbound === 0 ? '' : `; ${unbound} have only their amounts in the ledger, as was usual before charges-2`;
  const text = lines === 0 ? '' : `, ${lines} lines, ${proven} of them in sealed days${earlier}`;
  printLine(
    findings.length === 0 ? `${file}: right, signed by ${issuer}${text}` : `${file}: ${findings.length} findings`,
  );
  return findings.length;
}

async function checkDatabase(url: string, options: VerifyOptions): Promise<number> {
  const keys = await readKeysForDatabase(options);
  const database = await openDatabase(url);
  try {
    const verdict = await verifyRecord({ database, keys, witnesses: options.files.map(readJson) });
    const faults = await database.transaction(
      async (transaction) => {
        await transaction.script('set local statement_timeout = 0');
        return transaction.query(audit, []);
      },
      { lasting: true },
    );
    const findings = [...verdict.findings, ...faults.map(({ what }) => `audit: ${what}`)];
    printFindings(findings, printLine);
    const size = `${verdict.links} transactions in ${verdict.days} sealed days and those since, signed last at ${verdict.newest ?? 'no time'}`;
    printLine(findings.length === 0 ? `right: ${size}` : `${findings.length} findings in ${size}`);
    return findings.length;
  } finally {
    await database.close();
  }
}

/** Never reads keys from the database: an attacker who changed it would add their own. */
async function readKeysForDatabase(options: VerifyOptions): Promise<KeySet> {
  if (options.keys !== undefined || options.issuer !== undefined) return readKeys(options.keys, options.issuer ?? '');
  const { keys } = readReceiptSettings();
  if (keys.keys.length > 0) return keys;
  throw new EvidenceError('set --keys, --issuer or MOORAGE_RECEIPT_KEY: the database itself is not asked for keys');
}

function printFindings(findings: readonly string[], printLine: PrintLine): void {
  for (const finding of findings.slice(0, maxFindings)) printLine(finding);
  if (findings.length > maxFindings) printLine(`and ${findings.length - maxFindings} more`);
}

function printLine(line: string): void {
  process.stdout.write(`${line}\n`);
}

function readArguments(): VerifyOptions {
  const text = { type: 'string' } as const;
  const options = { keys: text, days: text, issuer: text, database: text };
  return readCommandLine({ usage, options, positionals: 1_000 }, ({ values, positionals }) => {
    if (positionals.length === 0 && values.database === undefined)
      throw new UsageError('a file to verify or --database is required');
    return {
      files: positionals.map(resolvePath),
      keys: values.keys === undefined ? undefined : resolvePath(values.keys),
      days: values.days === undefined ? undefined : resolvePath(values.days),
      issuer: values.issuer?.replace(/\/+$/, ''),
      database: values.database,
    };
  });
}

/** Npm runs scripts in the project's root; a relative path starts at the folder in which npm was called. */
function resolvePath(file: string): string {
  return resolve(process.env['INIT_CWD'] ?? '.', file);
}
