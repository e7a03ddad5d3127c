// Reads the configuration of a pipeline container from its environment.
import { join, posix } from 'node:path';
import { z } from 'zod';
import { readConfig } from '../../lib/config.ts';
import { pipelineInput, type PipelineInput, workspace } from './contract.ts';

const environment = z.object({
  MOORAGE_PIPELINE: z
    .string()
    .transform((text, context) => {
      try {
        return JSON.parse(text) as unknown;
      } catch {
        context.addIssue('must be JSON');
        return z.NEVER;
      }
    })
    .pipe(pipelineInput),
  MOORAGE_PUSH_TOKEN: z.string().optional().describe('Opens the repositories of this app at the registry proxy.'),
  MOORAGE_GIT_TOKEN: z
    .string()
    .optional()
    .describe('Reads the repository of this app on its git server; for the clone alone.'),
  MOORAGE_WORKSPACE: z.string().startsWith('/').default(workspace.root),
  MOORAGE_BUILDKIT_ROOT: z.string().startsWith('/').default('/var/lib/buildkit'),
});

export interface WorkspacePaths {
  readonly root: string;
  /** The author's files. */
  readonly source: string;
  /** Notes passed between stages, never inside the author's tree. */
  readonly notes: string;
  /** State of the builder, on a disk that supports overlay mounts; a container's root file system does not. */
  readonly builder: string;
}

export interface PipelineConfig {
  readonly input: PipelineInput;
  readonly paths: WorkspacePaths;
  readonly pushToken?: string | undefined;
  readonly gitToken?: string | undefined;
}

/** Returns the path of the termination message: /dev/termination-log, except in tests. */
export function getTerminationLog(variables: NodeJS.ProcessEnv = process.env): string {
  return variables['MOORAGE_TERMINATION_LOG'] ?? '/dev/termination-log';
}

/** Returns the workspace folders under a root. Only tests use other roots. */
export function toWorkspacePaths(root: string, builder: string): WorkspacePaths {
  const toPath = (path: string): string => join(root, path.slice(workspace.root.length));
  return { root, source: toPath(workspace.source), notes: toPath(workspace.notes), builder };
}

/** Reads the configuration. @throws Error that names each invalid variable */
export function readPipelineConfig(variables: NodeJS.ProcessEnv = process.env): PipelineConfig {
  const read = readConfig(environment, variables);
  return {
    input: { ...read.MOORAGE_PIPELINE, path: normalizePath(read.MOORAGE_PIPELINE.path) },
    paths: toWorkspacePaths(read.MOORAGE_WORKSPACE, read.MOORAGE_BUILDKIT_ROOT),
    pushToken: read.MOORAGE_PUSH_TOKEN,
    gitToken: read.MOORAGE_GIT_TOKEN,
  };
}

/** Normalizes a folder path: "./web/" becomes "web". */
function normalizePath(path: string): string {
  return posix.normalize(path).replace(/(?!^)\/$/, '');
}
