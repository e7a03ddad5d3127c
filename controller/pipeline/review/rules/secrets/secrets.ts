// Rule: no live credentials in the files; gitleaks looks for them, and nothing in the repository can silence it.
import { mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { dirname, join, relative } from 'node:path';
import { z } from 'zod';
import type { Finding } from '../../../../../crds/hosted-app.ts';
import { Fault } from '../../../outcome.ts';
import { run } from '../../../process.ts';
import { childEnvironment } from '../../../../../lib/child-environment.ts';
import { oneLine, tail } from '../../../text.ts';
import { onlyPublicTokens } from './json-web-token.ts';
import type { ReviewContext, Rule } from '../../rule.ts';

const report = z.array(z.object({ RuleID: z.string(), Description: z.string(), StartLine: z.int(), File: z.string() }));
type Leak = z.infer<typeof report>[number];

const leaksFound = 3;
const timeoutSeconds = 300;

/** Rules that judge by entropy alone: right often enough to say so, not often enough to refuse an app. */
const uncertain: ReadonlySet<string> = new Set([
  'generic-api-key',
  'curl-auth-header',
  'curl-auth-user',
  'hashicorp-tf-password',
  'kubernetes-secret-yaml',
]);
/** Kinds of secret that test suites and manuals carry samples of. */
const sampled: ReadonlySet<string> = new Set(['private-key', 'jwt', 'jwt-base64']);
const samplePath = /(?:^|\/)(?:tests?|__tests__|specs?|fixtures?|testdata|examples?|samples?|docs?|mocks?)\//i;

const fixError =
  'Revoke this credential now: it is public. Then remove it from the files and the history (git filter-repo), push, and provide it to the app at run time with run.secrets.';
const fixWarning =
  'If this is a real credential, revoke it and provide it to the app at run time with run.secrets. Otherwise, no change is needed.';

export const secrets: Rule = {
  name: 'secrets',
  async check(context) {
    const leaks = await scan(context);
    const seen = new Set<string>();
    return leaks.flatMap((leak) => {
      const finding = describe(leak, relative(context.source, leak.File), context);
      const key = `${finding.rule}\n${finding.file ?? ''}\n${String(finding.line)}`;
      if (seen.has(key)) return [];
      seen.add(key);
      return [finding];
    });
  },
};

/** Makes a finding that says where and what kind, never the secret itself. */
function describe(leak: Leak, file: string, { tree }: Pick<ReviewContext, 'tree'>): Finding {
  const unsure =
    uncertain.has(leak.RuleID) ||
    (sampled.has(leak.RuleID) && samplePath.test(file)) ||
    (leak.RuleID === 'jwt' && onlyPublicTokens(lineOf(tree.text(file), leak.StartLine), Date.now() / 1000));
  const what = oneLine(leak.Description).replace(/\.$/, '');
  return {
    rule: `secrets/${leak.RuleID}`,
    severity: unsure ? 'warning' : 'error',
    file,
    line: leak.StartLine,
    message: `${what}.`,
    fix: unsure ? fixWarning : fixError,
  };
}

function lineOf(text: string | undefined, number: number): string {
  return text?.split('\n')[number - 1] ?? '';
}

/**
 * Runs gitleaks on the folder that holds the tree, not on the tree: from the folder that it is given, gitleaks always
 * takes
 * a .gitleaksignore. The configuration is ours, and comments that ask for silence are not heard.
 */
async function scan(context: ReviewContext): Promise<Leak[]> {
  const folder = join(context.notes, 'gitleaks');
  await mkdir(folder, { recursive: true });
  const [config, output] = [join(folder, 'gitleaks.toml'), join(folder, 'report.json')];
  await writeFile(config, '[extend]\nuseDefault = true\n');
  const result = await run(
    'gitleaks',
    [
      'dir',
      dirname(context.source),
      '--config',
      config,
      '--gitleaks-ignore-path',
      join(folder, 'none'),
      '--ignore-gitleaks-allow',
      '--redact=100',
      '--no-banner',
      '--no-color',
      '--report-format',
      'json',
      '--report-path',
      output,
      '--exit-code',
      String(leaksFound),
      '--log-level',
      'error',
      '--timeout',
      String(timeoutSeconds),
    ],
    { env: childEnvironment(), cwd: folder, ...(context.signal === undefined ? {} : { signal: context.signal }) },
  );
  if (result.code !== 0 && result.code !== leaksFound)
    throw new Fault(`gitleaks failed: ${oneLine(tail(result.stderr, 500))}`);
  const leaks = report.parse(JSON.parse(await readFile(output, 'utf8')));
  await rm(folder, { recursive: true, force: true });
  return leaks.filter((leak) => leak.File.startsWith(`${context.source}/`));
}
