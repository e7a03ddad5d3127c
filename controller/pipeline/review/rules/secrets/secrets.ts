// Rule: the files in use contain no live credentials. gitleaks finds them; findings that the repository allows are
// reported.
import { dirname, join, posix, relative } from 'node:path';
import type { Finding } from '../../../../../crds/hosted-app.ts';
import { toOneLine } from '../../../text.ts';
import type { ReviewContext, Rule } from '../../rule.ts';
import { type AllowedLeaks, configFile, type Leak, removeAllowed, runGitleaks } from './gitleaks.ts';
import { isCheckedSecret, isPublicPath, isSamplePath, isServerKey } from './formats.ts';

const fixError =
  'Revoke this credential now: it is public. Then remove it from the files and the history (git filter-repo), push, and provide it to the app at run time with run.secrets. If it is no credential, say so with a gitleaks:allow comment in its line.';
const fixWarning =
  'If this is a real credential, revoke it and provide it to the app at run time with run.secrets. Otherwise, no change is needed.';

const warningsOfAKind = 5;

export const secrets: Rule = {
  name: 'secrets',
  async check(context) {
    const leaks = await scan(context);
    const allowed = await removeAllowed(leaks, context);
    const findings = allowed.remaining.map((leak) => toFinding(leak, context));
    return [...limitWarnings(removeDuplicates(findings)), ...reportAllowed(allowed)];
  },
};

function removeDuplicates(findings: readonly Finding[]): Finding[] {
  return [...new Map(findings.map((each) => [`${each.rule}\n${each.file ?? ''}\n${each.line ?? ''}`, each])).values()];
}

/** Keeps the first few warnings of each kind, so that other findings of the review stay visible. */
function limitWarnings(findings: readonly Finding[]): Finding[] {
  const warnings = new Map<string, number>();
  const shownFindings = findings.filter(({ rule, severity }) => {
    const count = (warnings.get(rule) ?? 0) + 1;
    if (severity === 'warning') warnings.set(rule, count);
    return severity === 'error' || count <= warningsOfAKind;
  });
  const omitted = findings.length - shownFindings.length;
  if (omitted === 0) return shownFindings;
  const message = `${omitted} more warnings of these kinds are not shown.`;
  return [
    ...shownFindings,
    {
      rule: 'secrets/more',
      severity: 'warning',
      message,
      fix: 'Run "gitleaks dir ." in the repository to see all of them.',
    },
  ];
}

/** Scans the parent folder of the tree, because gitleaks reads a .gitleaksignore in the folder that it is given. */
async function scan({ source, notes, signal }: ReviewContext): Promise<Leak[]> {
  const leaks = await runGitleaks({
    folder: dirname(source),
    cwd: notes,
    notes: join(notes, 'gitleaks'),
    config: '[extend]\nuseDefault = true\n',
    signal,
  });
  return leaks
    .filter((leak) => leak.File.startsWith(`${source}/`))
    .map((leak) => ({ ...leak, File: relative(source, leak.File) }));
}

/** Creates a finding with the location and kind, never the secret itself. */
function toFinding(leak: Leak, context: ReviewContext): Finding {
  const isError =
    isCheckedSecret(leak.RuleID, leak.Secret, Date.now() / 1000) &&
    isUsed(leak, context) &&
    !isForBrowsers(leak, context);
  return {
    rule: `secrets/${leak.RuleID}`,
    severity: isError ? 'error' : 'warning',
    file: leak.File,
    line: leak.StartLine,
    message: `${toOneLine(leak.Description).replace(/\.$/, '')}.`,
    fix: isError ? fixError : fixWarning,
  };
}

/** An app in a folder named examples is not an example. */
function isUsed({ File }: Leak, { input }: ReviewContext): boolean {
  const inApp = posix.relative(input.path, File);
  return !isSamplePath(inApp.startsWith('..') ? File : inApp);
}

function isForBrowsers({ RuleID, File, StartLine }: Leak, { tree }: ReviewContext): boolean {
  return RuleID === 'gcp-api-key' && (isPublicPath(File) || !isServerKey(tree.readFile(File) ?? '', StartLine));
}

/** Reports what the repository allows: it is neither an error nor hidden. */
function reportAllowed({ counts, broken }: AllowedLeaks): Finding[] {
  const total = [...counts.values()].reduce((sum, count) => sum + count, 0);
  const parts = [...counts].map(([by, count]) => `${count} by ${by}`);
  const findings: Finding[] = [];
  if (total > 0)
    findings.push({
      rule: 'secrets/allowed',
      severity: 'warning',
      message: `${total} ${total === 1 ? 'finding was' : 'findings were'} allowed by the repository: ${parts.join(', ')}.`,
      fix: 'No change is needed if none of them is a real credential.',
    });
  if (broken)
    findings.push({
      rule: 'secrets/allowlists',
      severity: 'warning',
      file: configFile,
      message: 'gitleaks refused the allowlists of this file, so they were not applied.',
      fix: 'Run "gitleaks dir ." in the repository, and correct what it reports.',
    });
  return findings;
}
