// The interface between the A2A agent and the tools.
import type { RequestContext } from '../http/index.ts';
import type { Offer } from '../apps/index.ts';

/** A call of a tool by an agent. */
export interface AgentCall {
  readonly tool: string;
  readonly arguments: Readonly<Record<string, unknown>>;
  readonly context: Omit<RequestContext, 'mediaType'>;
}

/** The result of a call. */
export interface AgentAnswer {
  /** The same JSON as the response of /t/<tool>. */
  readonly answer: Readonly<Record<string, unknown>>;
  readonly file?:
    | {
        readonly name: string;
        readonly mediaType: string;
        readonly url: string | undefined;
        readonly bytes: Uint8Array | undefined;
      }
    | undefined;
}

/** What the call of a model cost that read the words, as the envelope of a tool has it. */
export interface InterpretationCost {
  readonly model?: string;
  readonly cost_usd?: number;
  readonly charged_usd: number;
  readonly cost_source: string;
}

/** What words ask for, or what has to be known first. */
export type Interpretation =
  | {
      readonly kind: 'call';
      readonly tool: string;
      readonly arguments: Readonly<Record<string, unknown>>;
      readonly cost: InterpretationCost;
    }
  | { readonly kind: 'unsure'; readonly question: string; readonly cost: InterpretationCost };

export interface AgentOptions {
  readonly offer: Offer;
  /** Maps words to a tool; without it, as without a model router, words are asked back. @throws Problem */
  readonly interpret?: ((words: string, context: AgentCall['context']) => Promise<Interpretation>) | undefined;
  /** @throws Problem */
  readonly call: (call: AgentCall) => Promise<AgentAnswer>;
}
