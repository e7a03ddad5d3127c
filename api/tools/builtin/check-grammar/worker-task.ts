// What the worker of check_grammar is given, and what it gives back.
import { z } from 'zod';
import { matches } from './match.ts';

export interface GrammarTask {
  readonly text: string;
  /** A code, or auto. */
  readonly language: string;
}

export const grammarReply = z.object({
  /** The language that the text is in, where it surely is not the one that was named. */
  other: z.string().optional(),
  /** For auto: the language, where that is sure. */
  detected: z.string().optional(),
  /** Of English. */
  matches,
});
export type GrammarReply = z.output<typeof grammarReply>;
