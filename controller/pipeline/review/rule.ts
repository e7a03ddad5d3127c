// What a review rule is: a pure look at the author's tree that gives findings.
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
  /** Where the commit points into other repositories, and what became of each. */
  readonly submodules: readonly Submodule[];
  readonly signal?: AbortSignal;
}

export interface Rule {
  /** First part of the `rule` of its findings. */
  readonly name: string;
  check(context: ReviewContext): readonly Finding[] | Promise<readonly Finding[]>;
}
