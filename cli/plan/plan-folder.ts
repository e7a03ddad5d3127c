// Plans a folder on this machine as the review of a submitted repository would, and prints the plan.
import type { Finding, Plan } from '../../crds/hosted-app.ts';
import { pipelineInput, type PipelineInput, Rejected } from '../../controller/pipeline/contract.ts';
import { readManifest } from '../../controller/pipeline/app-manifest.ts';
import { locateApp, planApp } from '../../controller/pipeline/plan/repository.ts';
import { dockerfile as dockerfileRule, sourcePath } from '../../controller/pipeline/review/rules/files.ts';
import { readDiskTree, type Tree } from '../../controller/pipeline/tree.ts';
import { formatFinding } from '../../controller/pipeline/message.ts';

export interface FolderPlan {
  readonly refused: boolean;
  /** Folder of the app in the repository. */
  readonly path: string;
  readonly findings: readonly Finding[];
  readonly plan?: Plan;
  /** Text of the Dockerfile that Moorage wrote; absent when the author's own is built. */
  readonly dockerfile?: string;
  /** Path of the author's Dockerfile, when that is built. */
  readonly file?: string;
}

/** Folders that exist on a machine and never in a commit. */
const untracked: ReadonlySet<string> = new Set(['.git', 'node_modules', '.venv', '__pycache__']);

/** The input for a submission without any settings. */
function createDefaultInput(): PipelineInput {
  return pipelineInput.parse({
    app: 'plan',
    repo: 'https://localhost/plan/plan',
    commit: '0'.repeat(40),
    path: '.',
    build: { strategy: 'auto', dockerfile: 'Dockerfile', args: [], env: [] },
    image: 'localhost/plan',
    push: 'localhost/plan',
    limits: { repositoryBytes: 1, files: 1, fileBytes: 1 },
  });
}

/** Plans a folder. Never throws because of its contents. */
export function planFolder(folder: string): FolderPlan {
  const tree = readDiskTree(folder, untracked);
  const app = locateApp(createDefaultInput(), tree);
  const { input } = app;
  const findings = [...readManifest(tree).findings, ...runChecks(tree, folder, input)];
  const wrong = findings.some((each) => each.severity === 'error');
  if (wrong) return { refused: true, path: input.path, findings };
  try {
    const recipe = planApp(tree, app);
    return {
      refused: false,
      path: input.path,
      findings: [...findings, ...recipe.findings],
      plan: recipe.plan,
      ...(recipe.dockerfile === undefined ? { file: input.build.dockerfile } : { dockerfile: recipe.dockerfile }),
    };
  } catch (error) {
    if (!(error instanceof Rejected)) throw error;
    return { refused: true, path: input.path, findings: [...findings, ...error.findings] };
  }
}

/** Runs the review rules that a plan depends on; the others need programs that only a pipeline has. */
function runChecks(tree: Tree, folder: string, input: PipelineInput): Finding[] {
  const context = { tree, source: folder, notes: folder, input, submodules: [] };
  return [sourcePath, dockerfileRule].flatMap((rule) => {
    const result = rule.check(context);
    return result instanceof Promise ? [] : [...result];
  });
}

/** One JSON object, for a program. A rejection has no strategy. */
export function formatJson({ plan, path, findings, dockerfile, file, refused }: FolderPlan): string {
  return `${JSON.stringify({ refused, ...plan, path, findings, dockerfile, file }, null, 2)}\n`;
}

/** Plan, reasons and warnings, then the Dockerfile, for a person. */
export function formatText(planned: FolderPlan): string {
  const { plan, path, findings, dockerfile, file } = planned;
  const findingLines = findings.map((each: Finding) => formatFinding(each));
  if (plan === undefined) return ['This cannot be planned.', ...findingLines, ''].join('\n');
  const strategy = plan.framework === undefined ? plan.strategy : `${plan.strategy}, ${plan.framework}`;
  return [
    `plan: ${strategy}`,
    `why:  ${plan.reason}`,
    ...(path === '.' ? [] : [`path: ${path}`]),
    ...(plan.port === undefined ? [] : [`port: ${plan.port}`]),
    ...findingLines,
    '',
    dockerfile ?? `The Dockerfile of the repository is built: ${file ?? ''}`,
    '',
  ].join('\n');
}
