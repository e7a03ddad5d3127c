// Rule: a repository stays within the limits of bytes, files and bytes of one file.
import type { Finding } from '../../../../crds/hosted-app.ts';
import type { PipelineInput } from '../../contract.ts';
import { size } from '../../text.ts';
import type { Rule } from '../rule.ts';

type Limits = PipelineInput['limits'];

const fix =
  'Keep models, datasets and media out of the repository; download them when the app starts, or store them on a volume.';

/** Adds up files one at a time, so that a hostile listing can be left at the first limit that it passes. */
export class LimitCounter {
  readonly #limits: Limits;
  files = 0;
  bytes = 0;

  constructor(limits: Limits) {
    this.#limits = limits;
  }

  /** A counter that goes on from here by itself. */
  copy(): LimitCounter {
    const copy = new LimitCounter(this.#limits);
    copy.take(this);
    return copy;
  }

  /** Takes over the count of a copy. */
  take({ files, bytes }: LimitCounter): void {
    this.files = files;
    this.bytes = bytes;
  }

  /** Counts a file in. Gives the finding of the limit that it passes, if any. */
  add(path: string, bytes: number): Finding | undefined {
    this.files += 1;
    this.bytes += bytes;
    if (bytes > this.#limits.fileBytes) {
      return {
        rule: 'limits/file-bytes',
        severity: 'error',
        file: path,
        message: `This file is ${size(bytes)}; the maximum is ${size(this.#limits.fileBytes)}.`,
        fix,
      };
    }
    if (this.files > this.#limits.files) {
      return {
        rule: 'limits/files',
        severity: 'error',
        message: `The repository has more than ${this.#limits.files} files.`,
        fix: 'Keep dependencies (node_modules, .venv) and generated files out of the repository, using .gitignore and "git rm -r --cached".',
      };
    }
    if (this.bytes <= this.#limits.repositoryBytes) return undefined;
    return {
      rule: 'limits/repository-bytes',
      severity: 'error',
      message: `The files of the repository exceed ${size(this.#limits.repositoryBytes)} in total.`,
      fix,
    };
  }
}

export const limits: Rule = {
  name: 'limits',
  check({ tree, input }) {
    const counter = new LimitCounter(input.limits);
    for (const entry of tree.entries) {
      if (entry.kind === 'directory') continue;
      const passed = counter.add(entry.path, entry.bytes);
      if (passed !== undefined) return [passed];
    }
    return [];
  },
};
