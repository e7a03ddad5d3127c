// A campaign: which runs it has, and whether one like it was begun before.
import { randomBytes } from 'node:crypto';
import type { BenchWriter, CampaignPlan, PlannedRun } from '../store/writing.ts';
import { sha256 } from '../tasks/canonical.ts';
import { instanceOf, isHeldBack, type Seeds } from '../tasks/instance.ts';
import type { BenchmarkManifest } from '../tasks/task.ts';

export interface CampaignChoice {
  readonly manifest: BenchmarkManifest;
  readonly models: readonly string[];
  /** Runs of each model on each task. */
  readonly runs: number;
  /** Undefined: that of the campaign which has not finished, else a new one. */
  readonly seed: string | undefined;
}

export interface PreparedCampaign {
  readonly id: string;
  readonly seeds: Seeds;
  /** Whether it was begun before. */
  readonly resumed: boolean;
  /** Runs that were in progress when the process before ended. */
  readonly interrupted: number;
}

/** Goes on with the unfinished campaign of the same choice, or registers a new one with all of its runs. */
export async function prepareCampaign(choice: CampaignChoice, writer: BenchWriter): Promise<PreparedCampaign> {
  const fixed = fixedPart(choice);
  const begun = await writer.unfinished({ ...fixed, seed: choice.seed });
  if (begun !== undefined) {
    const interrupted = await writer.takeOver(begun.id);
    return { id: begun.id, seeds: { seed: begun.seed, heldBack: begun.heldBackSeed }, resumed: true, interrupted };
  }
  const seeds = { seed: choice.seed ?? randomBytes(16).toString('hex'), heldBack: randomBytes(32).toString('hex') };
  const plan: CampaignPlan = {
    ...fixed,
    seed: seeds.seed,
    heldBackSeed: seeds.heldBack,
    heldBackHash: sha256(seeds.heldBack),
    parameters: choice.manifest.parameters,
    attribution: choice.manifest.attribution,
  };
  return { id: await writer.register(plan, plannedRuns(choice, seeds)), seeds, resumed: false, interrupted: 0 };
}

/** What makes two campaigns the same one; the order of the models is none of it. */
function fixedPart({
  manifest,
  models,
  runs,
}: CampaignChoice): Pick<CampaignPlan, 'app' | 'models' | 'tasks' | 'runs'> {
  const tasks = manifest.tasks.map(({ slug, hash, born }) => ({ task: slug, hash, born }));
  return { app: manifest.app, models: [...new Set(models)].sort(), tasks, runs };
}

/** Each model on each task, on the same instances. */
export function plannedRuns({ manifest, models, runs }: CampaignChoice, seeds: Seeds): PlannedRun[] {
  const numbers = Array.from({ length: runs }, (_none, index) => index + 1);
  return manifest.tasks.flatMap((task) =>
    numbers.flatMap((number) => {
      const { hash } = instanceOf(task, number, seeds);
      return [...new Set(models)].map((model) => ({
        model,
        task: task.slug,
        number,
        held_back: isHeldBack(number),
        task_hash: task.hash,
        instance: hash,
      }));
    }),
  );
}
