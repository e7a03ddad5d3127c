// Stage 2: judges the author's files by every rule, then plans the image.
import type { Finding } from '../../../crds/hosted-app.ts';
import { approvalRule, type PipelineInput, type ReviewResult } from '../contract.ts';
import { readNotes } from '../notes.ts';
import { Rejected } from '../outcome.ts';
import { locateApp, planApp } from '../plan/repository.ts';
import { writePlan } from '../plan/write.ts';
import { describeManifest } from '../manifest/merge.ts';
import type { WorkspacePaths } from '../config.ts';
import { diskTree } from '../tree.ts';
import type { ReviewContext } from './rule.ts';
import { rules } from './rules/all.ts';
import { applyWaivers } from './waivers.ts';
import { findingLine } from '../finding-line.ts';

const maximumFindings = 50;

/** @throws Rejected when any rule finds an error or no plan fits, Fault when a tool of the review fails. */
export async function review(
  asked: PipelineInput,
  paths: WorkspacePaths,
  say: (line: string) => void,
  signal?: AbortSignal,
): Promise<ReviewResult> {
  const { submodules } = await readNotes(paths.notes, 'clone');
  const tree = diskTree(paths.source);
  const app = locateApp(asked, tree);
  const { input, settings, platform } = app;
  for (const text of describeManifest(settings)) say(text);
  const context: ReviewContext = {
    tree,
    source: paths.source,
    notes: paths.notes,
    input,
    submodules,
    ...(signal === undefined ? {} : { signal }),
  };
  const findings = applyWaivers([...(await check(context)), ...platform], input.waivers);
  const [first, ...more] = byUrgency(findings.filter((each) => each.severity === 'error'));
  if (first !== undefined)
    throw new Rejected([first, ...more, ...findings.filter((each) => each.severity === 'warning')]);
  for (const each of findings) say(findingLine(each));
  const recipe = planApp(tree, app);
  await writePlan(recipe, input, paths);
  say(`plan: ${recipe.plan.strategy}. ${recipe.plan.reason}`);
  for (const each of recipe.findings) say(findingLine(each));
  return {
    findings: [...findings, ...recipe.findings].slice(0, maximumFindings),
    plan: recipe.plan,
    ...(settings === undefined ? {} : { settings }),
  };
}

/** What the author has to fix comes before what the operator of the installation has to allow. */
function byUrgency(errors: readonly Finding[]): Finding[] {
  return errors.toSorted((one, other) => Number(one.rule === approvalRule) - Number(other.rule === approvalRule));
}

/** Findings of all rules. Every rule is asked, so that an author sees all there is to fix at once. */
export async function check(context: ReviewContext): Promise<Finding[]> {
  const found = await Promise.all(rules.map(async (rule) => rule.check(context)));
  return found.flat();
}
