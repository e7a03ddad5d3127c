// Defines a review rule: a pure function from the author's tree to findings.
import type { Finding } from '../../../crds/hosted-app.ts';
import type { PipelineInput } from '../contract.ts';
import type { Submodule } from '../handover.ts';
import type { Tree } from '../tree.ts';

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
