// What is known of a build that failed, and where in the author's files a finding points.
import { posix } from 'node:path';
import type { Finding } from '../../../crds/hosted-app.ts';

export interface FailedBuild {
  /** The plain progress and the error that buildctl printed at its end. */
  readonly output: string;
  /** Path of the author's Dockerfile in the repository; absent when Moorage planned it. */
  readonly authored?: string | undefined;
  /** Text of the Dockerfile that was built. */
  readonly dockerfile: string;
  /** A fault that the author could have staged was believed for this commit before. */
  readonly doubted?: boolean;
  /** The node has less disk free than the build may take. */
  readonly lacksDisk?: boolean;
  /** Registry hosts that a mirror stands in for, which answers. */
  readonly mirrored?: readonly string[];
}

/** Path and line in the author's Dockerfile; nothing where Moorage planned it. */
export function positionOf(build: FailedBuild, line: number | undefined): Pick<Finding, 'file' | 'line'> {
  if (build.authored === undefined) return {};
  return { file: posix.normalize(build.authored), ...(line === undefined ? {} : { line }) };
}
