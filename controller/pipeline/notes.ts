// Notes that one stage leaves for the next, as JSON files beside the author's tree.
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';
import { plan } from '../../crds/hosted-app.ts';

const submodule = z.object({
  path: z.string(),
  commit: z.string(),
  problem: z.string().optional().describe('Why it was not fetched; absent: its files are in the tree.'),
  passing: z.boolean().optional().describe('Another try may fetch it.'),
});
/** A place at which a commit points into another repository. */
export type Submodule = z.infer<typeof submodule>;

export const cloneNotes = z.object({
  commit: z.string(),
  time: z.int().describe('Time of the commit, seconds since 1970.'),
  submodules: z.array(submodule).describe('Where the commit points into other repositories.'),
});
export type CloneNotes = z.infer<typeof cloneNotes>;

export const planNotes = z.object({
  plan,
  dockerfile: z.string().describe('Absolute path of the Dockerfile to build.'),
  authored: z.boolean().describe("The Dockerfile is the author's own."),
  context: z.string().describe('Absolute path of the build context.'),
});
export type PlanNotes = z.infer<typeof planNotes>;

const files = { clone: 'clone.json', plan: 'plan.json' } as const;
const schemas = { clone: cloneNotes, plan: planNotes } as const;
type Kind = keyof typeof files;

export async function writeNotes<K extends Kind>(
  folder: string,
  kind: K,
  value: z.infer<(typeof schemas)[K]>,
): Promise<void> {
  await mkdir(folder, { recursive: true });
  await writeFile(join(folder, files[kind]), `${JSON.stringify(value, null, 2)}\n`);
}

/** @throws Error when the earlier stage left none. */
export async function readNotes<K extends Kind>(folder: string, kind: K): Promise<z.infer<(typeof schemas)[K]>> {
  const parsed: unknown = schemas[kind].parse(JSON.parse(await readFile(join(folder, files[kind]), 'utf8')));
  return parsed as z.infer<(typeof schemas)[K]>;
}
