// Reads the listing of a commit and stops at the first limit that it passes, before a byte is checked out.
import type { Git } from '../../../lib/git/index.ts';
import type { PipelineInput } from '../contract.ts';
import { Fault, Rejected } from '../outcome.ts';
import { LimitCounter } from '../review/rules/limits.ts';
import { gitFailure } from './fetch.ts';

export interface Listing {
  readonly files: number;
  readonly bytes: number;
  /** Paths at which the commit points into other repositories. */
  readonly gitlinks: string[];
}

const longestRecordBytes = 64 * 1024;

/** Collects the records of `git ls-tree -r -l -z`. @throws Rejected at the first limit that is passed. */
export class ListingReader {
  readonly gitlinks: string[] = [];
  readonly counter: LimitCounter;
  #rest: Buffer = Buffer.alloc(0);

  constructor(limits: PipelineInput['limits']) {
    this.counter = new LimitCounter(limits);
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
    const [mode = '', , , bytes = ''] = record.slice(0, tab).split(/ +/);
    const path = record.slice(tab + 1);
    if (mode === '160000') this.gitlinks.push(path);
    const passed = this.counter.add(path, /^\d+$/.test(bytes) ? Number(bytes) : 0);
    if (passed !== undefined) throw new Rejected([passed]);
  }
}

/** Lists the files of a commit within the limits. @throws Rejected when it has more. */
export async function listCommit(
  git: Git,
  input: Pick<PipelineInput, 'commit' | 'limits'>,
  signal?: AbortSignal,
): Promise<Listing> {
  const reader = new ListingReader(input.limits);
  const listed = await git(['ls-tree', '-r', '-l', '-z', '--full-tree', input.commit], {
    onStdout: (chunk) => {
      reader.read(chunk);
    },
    keepBytes: 4096,
    signal,
  });
  if (listed.code !== 0) throw gitFailure('git could not list the commit', listed);
  return { files: reader.counter.files, bytes: reader.counter.bytes, gitlinks: reader.gitlinks };
}
