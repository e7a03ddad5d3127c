// Whether a rejection is fair: expected, closed by the network, for want of a setting, or for a person to judge.
import type { RunEntry } from '../corpus.ts';
import type { Evidence } from './evidence.ts';

export interface Fairness {
  /** `network`: it says nothing of Moorage. `unjudged`: a person reads the text. */
  readonly fair: 'yes' | 'no' | 'network' | 'unjudged';
  readonly why: string;
}

/** What a person says of a rejection: a refused one is the network's. */
const fairOf = { right: 'yes', wrong: 'no', refused: 'network' } as const;

/** The word of a person who has read the rejection: of the run with the Dockerfiles, or of the one without. */
export function judgedBy(entry: Pick<RunEntry, 'judged'> | undefined, hidden: boolean): Fairness | undefined {
  const judged = entry?.judged?.[hidden ? 'run-hidden' : 'run'];
  return judged === undefined ? undefined : { fair: fairOf[judged.verdict], why: judged.reason };
}

/** What came of a submission in vain. */
export interface Rejected {
  /** The words of the rejection, its log among them. */
  readonly text: string;
  readonly evidence: Evidence | undefined;
  /** Its Dockerfiles were hidden. */
  readonly hidden: boolean;
}

export function fairness(entry: RunEntry, { text, evidence, hidden }: Rejected): Fairness {
  const judged = judgedBy(entry, hidden);
  if (judged !== undefined) return judged;
  const second = entry.half !== undefined;
  if (!second && entry.expected !== undefined && 'refuse' in entry.expected)
    return { fair: 'yes', why: `expected: ${entry.expected.refuse}` };
  // What may be refused too is not said to be so where the network alone was the cause.
  if (evidence !== undefined) return { fair: 'network', why: `${evidence.kind} ${evidence.what}: ${evidence.line}` };
  // In the second corpus, a reader judges every rejection, also one that the entry expects: its reason can be untrue.
  if (second) return { fair: 'unjudged', why: '' };
  const refused = entry.also?.find((each) => 'refuse' in each);
  if (refused !== undefined) return { fair: 'yes', why: `expected: ${refused.refuse}` };
  const want = findNeed(entry, text);
  return want === undefined ? { fair: 'unjudged', why: '' } : { fair: 'yes', why: want };
}

/** What it asks for that no host gives unasked. */
function findNeed({ needs }: RunEntry, text: string): string | undefined {
  const key = needs?.keys?.find((each) => text.includes(each) && !text.startsWith('build/'));
  if (key !== undefined) return `asks for ${key}, which only a user can give`;
  return needs?.gpu === true && /\b(?:GPU|CUDA|nvidia)\b/i.test(text) ? 'asks for a GPU' : undefined;
}
