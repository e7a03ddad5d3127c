// Whether a rejection is fair: expected, closed by the network, for want of a setting, or for a person to judge.
import type { Entry } from '../corpus.ts';
import type { Evidence } from './evidence.ts';

export interface Fairness {
  /** `network`: it says nothing of Moorage. `unjudged`: a person reads the text. */
  readonly fair: 'yes' | 'no' | 'network' | 'unjudged';
  readonly why: string;
}

/** @param text the words of the rejection, its log among them */
export function fairness(entry: Entry, text: string, evidence: Evidence | undefined): Fairness {
  const judged = entry.judged?.['run'];
  if (judged !== undefined) return { fair: judged.verdict === 'right' ? 'yes' : 'no', why: judged.reason };
  const refused = [entry.expected, ...(entry.also ?? [])].find((each) => 'refuse' in each);
  if (refused !== undefined) return { fair: 'yes', why: `expected: ${refused.refuse}` };
  if (evidence !== undefined) return { fair: 'network', why: `${evidence.kind} ${evidence.what}: ${evidence.line}` };
  const want = wantOf(entry, text);
  return want === undefined ? { fair: 'unjudged', why: '' } : { fair: 'yes', why: want };
}

/** What it asks for that no host gives unasked. */
function wantOf({ needs }: Entry, text: string): string | undefined {
  const key = needs?.keys?.find((each) => text.includes(each));
  if (key !== undefined) return `asks for ${key}, which only a user can give`;
  return needs?.gpu === true && /\b(?:GPU|CUDA|nvidia)\b/i.test(text) ? 'asks for a GPU' : undefined;
}
