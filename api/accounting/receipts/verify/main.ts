// `npm run verify`: checks signed documents, and the database that they come from. Wiring only.
import { z } from 'zod';
import { openDatabase } from '../../../billing/index.ts';
import { readReceiptSettings } from '../config.ts';
import type { KeySet } from '../format/keys.ts';
import { verifyDocument } from '../format/verify-document.ts';
import { EvidenceError, lastDueDay, readDays, readJson, readKeys } from './evidence.ts';
import { readArguments, type VerifyOptions } from './options.ts';
import { verifyRecord } from './record.ts';
import { audit } from './statements.ts';

/** Of a record in disorder the first findings say enough. */
const maxFindings = 200;

const options = readArguments();
try {
  const found = options.database === undefined ? await checkFiles(options) : await checkDatabase(options.database);
  process.exitCode = found === 0 ? 0 : 1;
} catch (error) {
  if (!(error instanceof EvidenceError)) throw error;
  say(error.message);
  process.exitCode = 1;
}

/** A file that cannot be checked is a finding, and does not keep the others from being checked. */
async function checkFiles({ files, ...from }: VerifyOptions): Promise<number> {
  let found = 0;
  for (const file of files) {
    try {
      found += await checkFile(file, from);
    } catch (error) {
      if (!(error instanceof EvidenceError)) throw error;
      say(error.message);
      found += 1;
    }
  }
  return found;
}

async function checkFile(file: string, from: Pick<VerifyOptions, 'keys' | 'days' | 'issuer'>): Promise<number> {
  const document = readJson(file);
  const issuer = z.object({ issuer: z.string() }).safeParse(document).data?.issuer ?? '';
  if (from.issuer !== undefined && issuer !== from.issuer) {
    say(`${file}: its issuer is ${issuer}, not ${from.issuer}`);
    return 1;
  }
  const keys = await readKeys(from.keys, issuer);
  const days = await readDays(document, { file: from.days, issuer, keys });
  const { findings, lines, proven, unbound } = await verifyDocument(document, { keys, days, due: lastDueDay() });
  report(findings.map((finding) => `${file}: ${finding}`));
  const earlier =
    unbound === 0 ? '' : `; ${unbound} have only their amounts in the ledger, as was usual before charges-2`;
  const text = lines === 0 ? '' : `, ${lines} lines, ${proven} of them in sealed days${earlier}`;
  say(findings.length === 0 ? `${file}: right, signed by ${issuer}${text}` : `${file}: ${findings.length} findings`);
  return findings.length;
}

async function checkDatabase(url: string): Promise<number> {
  const keys = await keysForDatabase();
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
    report(findings);
    const size = `${verdict.links} transactions in ${verdict.days} sealed days and those since, signed last at ${verdict.newest ?? 'no time'}`;
    say(findings.length === 0 ? `right: ${size}` : `${findings.length} findings in ${size}`);
    return findings.length;
  } finally {
    await database.close();
  }
}

/** Never from the database: who changed it would name keys of his own. */
async function keysForDatabase(): Promise<KeySet> {
  if (options.keys !== undefined || options.issuer !== undefined) return readKeys(options.keys, options.issuer ?? '');
  const { keys } = readReceiptSettings();
  if (keys.keys.length > 0) return keys;
  throw new EvidenceError('set --keys, --issuer or MOORAGE_RECEIPT_KEY: the database itself is not asked for keys');
}

function report(findings: readonly string[]): void {
  for (const finding of findings.slice(0, maxFindings)) say(finding);
  if (findings.length > maxFindings) say(`and ${findings.length - maxFindings} more`);
}

function say(line: string): void {
  process.stdout.write(`${line}\n`);
}
