// Reads the listing of a commit and stops at the first limit that it passes, before a byte is checked out.
import type { Git } from '../../../lib/git/index.ts';
import type { PipelineInput } from '../contract.ts';
import { Fault, Rejected } from '../outcome.ts';
import { LimitCounter } from '../review/rules/limits.ts';
import { gitFailure } from './fetch.ts';

/** Where a commit points into another repository. */
export interface Gitlink {
  readonly path: string;
  readonly commit: string;
}

export interface Listing {
  readonly gitlinks: readonly Gitlink[];
}

interface ListInput extends Pick<PipelineInput, 'commit' | 'limits'> {
  /** Counts on, where the files are part of a larger tree. */
  readonly counter?: LimitCounter;
  /** Folder that they are in, with its slash. */
  readonly prefix?: string;
}

const longestRecordBytes = 64 * 1024;

/** Collects the records of `git ls-tree -r -l -z`. @throws Rejected at the first limit that is passed. */
export class ListingReader {
  readonly gitlinks: Gitlink[] = [];
  readonly counter: LimitCounter;
  readonly #prefix: string;
  #rest: Buffer = Buffer.alloc(0);

  constructor(
    limits: PipelineInput['limits'],
    { counter = new LimitCounter(limits), prefix = '' }: Partial<ListInput> = {},
  ) {
    this.counter = counter;
    this.#prefix = prefix;
  }

  read(chunk: Buffer): void {
    let buffer = this.#rest.length === 0 ? chunk : Buffer.concat([this.#rest, chunk]);
    for (let end = buffer.indexOf(0); end >= 0; end = buffer.indexOf(0)) {
      this.#record(buffer.subarray(0, end).toString('utf8'));
      buffer = buffer.subarray(end + 1);
    }
    if (buffer.length > longestRecordBytes) throw new Fault('git listed a path that is too long to be true');
    this.#rest = Buffer.from(buffer);
  }

  #record(record: string): void {
    const tab = record.indexOf('\t');
    const [mode = '', , object = '', bytes = ''] = record.slice(0, tab).split(/ +/);
    const path = record.slice(tab + 1);
    if (mode === '160000') this.gitlinks.push({ path, commit: object });
    const passed = this.counter.add(`${this.#prefix}${path}`, /^\d+$/.test(bytes) ? Number(bytes) : 0);
    if (passed !== undefined) throw new Rejected([passed]);
  }
}

/** Lists the files of a commit within the limits. @throws Rejected when it has more. */
export async function listCommit(git: Git, input: ListInput, signal?: AbortSignal): Promise<Listing> {
  const reader = new ListingReader(input.limits, input);
  const listed = await git(['ls-tree', '-r', '-l', '-z', '--full-tree', input.commit], {
    onStdout: (chunk) => {
      reader.read(chunk);
    },
    keepBytes: 4096,
    signal,
  });
  if (listed.code !== 0) throw gitFailure('git could not list the commit', listed);
  return { gitlinks: reader.gitlinks };
}
