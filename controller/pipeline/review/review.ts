// Stage 2: checks the author's files against every rule, then plans the image.
import type { Finding, Plan, Waiver } from '../../../crds/hosted-app.ts';
import { type WorkspacePaths, approvalRule, type PipelineInput, Rejected, type ReviewResult } from '../contract.ts';
import { readNotes, type Submodule } from '../handover.ts';
import { describeManifest, manifestRule } from '../app-manifest.ts';
import { rewriteFields } from '../components.ts';
import { formatFinding } from '../message.ts';
import { type AppPlan, locateApp, offerTools, planApp, writePlan } from '../plan/repository.ts';
import { keepHead, toOneLine } from '../text.ts';
import { readDiskTree, type Tree } from '../tree.ts';
import { dockerfile, largeFiles, limits, names, sourcePath, symlinks, submodules } from './rules/files.ts';
import { license } from './rules/license/license.ts';
import { secrets } from './rules/secrets/secrets.ts';

const maximumFindings = 50;

/** @throws Rejected if any rule finds an error or no plan matches, Fault if a review tool fails */
export async function review(
  baseInput: PipelineInput,
  paths: WorkspacePaths,
  printLine: (line: string) => void,
  signal?: AbortSignal,
): Promise<ReviewResult> {
  const { submodules, package: registry } = await readNotes(paths.notes, 'clone');
  const tree = readDiskTree(paths.source, { registry });
  const app = locateApp(baseInput, tree);
  const { input, platform } = app;
  for (const text of describeManifest(app.settings)) printLine(text);
  const context: ReviewContext = {
    tree,
    source: paths.source,
    notes: paths.notes,
    input,
    submodules,
    ...(signal === undefined ? {} : { signal }),
  };
  const findings = applyWaivers([...(await checkRules(context)), ...platform], input.waivers);
  const [first, ...more] = sortByUrgency(findings.filter((each) => each.severity === 'error'));
  if (first !== undefined)
    throw new Rejected([first, ...more, ...findings.filter((each) => each.severity === 'warning')]);
  for (const each of findings) printLine(formatFinding(each));
  const planned = planApp(tree, app);
  const settings = offerTools(app.settings, planned);
  await writePlan(planned.images, paths);
  for (const text of describePlan(planned)) printLine(text);
  for (const each of planned.findings) printLine(formatFinding(each));
  return {
    findings: [...findings, ...planned.findings].slice(0, maximumFindings),
    plan: planned.plan,
    ...(settings === undefined ? {} : { settings }),
  };
}

/** Describes the plan of each image for the log. */
function describePlan({ images }: AppPlan): string[] {
  return images.flatMap(({ component, recipe: { plan } }) => {
    const name = component?.name;
    const about = name === undefined ? '' : ` of ${name}`;
    const command = rewriteFields('run.command', name);
    return [
      `plan${about}: ${plan.strategy}. ${rewriteFields(plan.reason, name)}`,
      ...(plan.certainty === 'guessed'
        ? [`this plan is a guess; if the app does not answer, set ${command} in moorage.yaml to what starts it`]
        : []),
      ...describeMcp(plan),
      ...(plan.otherwise === undefined ? [] : [`not chosen${about}: ${rewriteFields(plan.otherwise, name)}`]),
    ];
  });
}

/** Describes in the log how an MCP server starts, and which variables it asks for. */
function describeMcp({ mcp }: Plan): string[] {
  if (mcp === undefined) return [];
  const { transport, command, environment = [] } = mcp;
  const names = environment.map(
    ({ name, required, secret }) => `${name}${required ? ' (required)' : ''}${secret ? ', a secret' : ''}`,
  );
  const asked = names.length === 0 ? [] : [`it asks for the variables ${names.join('; ')}`];
  return [`MCP server over ${transport}: ${command}`, ...asked];
}

/** Sorts errors that the author must fix before those that the operator of the installation must approve. */
function sortByUrgency(errors: readonly Finding[]): Finding[] {
  return errors.toSorted((one, other) => Number(one.rule === approvalRule) - Number(other.rule === approvalRule));
}

/** Collects the findings of all rules. Every rule runs, so that an author sees every problem in one review. */
export async function checkRules(context: ReviewContext): Promise<Finding[]> {
  const found = await Promise.all(rules.map(async (rule) => rule.check(context)));
  return found.flat();
}

const rules: readonly Rule[] = [
  limits,
  names,
  symlinks,
  submodules,
  manifestRule,
  sourcePath,
  secrets,
  license,
  dockerfile,
  largeFiles,
];

const fixWaived =
  'The operator of this installation waived this for the app; the reason is theirs. No change is needed.';

/** Applies waivers to the findings. Reports a waiver that matches nothing, because it may name the wrong file. */
export function applyWaivers(findings: readonly Finding[], waivers: readonly Waiver[]): Finding[] {
  const waived = findings.map((finding) => {
    const usedWaiver = waivers.find((waiver) => isMatch(waiver, finding));
    return usedWaiver === undefined ? finding : soften(finding, usedWaiver);
  });
  const unused = waivers.filter((waiver) => !findings.some((finding) => isMatch(waiver, finding)));
  return [...waived, ...unused.map(toUnusedFinding)];
}

function isMatch({ rule, file }: Waiver, finding: Finding): boolean {
  return rule === finding.rule && (file === undefined || file === finding.file);
}

function soften(finding: Finding, { reason }: Waiver): Finding {
  const message = `Waived: ${keepHead(toOneLine(reason), 600)} (${finding.message})`;
  return { ...finding, severity: 'warning', message, fix: fixWaived };
}

function toUnusedFinding({ rule, file }: Waiver): Finding {
  const where = file === undefined ? '' : ` in ${keepHead(toOneLine(file), 300)}`;
  return {
    rule: 'waivers/unused',
    severity: 'warning',
    message: `The waiver of ${rule}${where} matches no finding of this commit.`,
    fix: 'The operator of this installation can remove it from spec.review.waivers, or correct its rule and file.',
  };
}

export interface ReviewContext {
  readonly tree: Tree;
  /** Absolute path of that tree, for tools that read it themselves. */
  readonly source: string;
  /** Folder for their reports, outside the tree. */
  readonly notes: string;
  readonly input: PipelineInput;
  /** Submodules of the commit, and the result of fetching each. */
  readonly submodules: readonly Submodule[];
  readonly signal?: AbortSignal;
}

export interface Rule {
  /** First part of the `rule` of its findings. */
  readonly name: string;
  check(context: ReviewContext): readonly Finding[] | Promise<readonly Finding[]>;
}
