// What the A2A agent needs of the tools: to call one, and to describe them.
import type { RequestContext } from '../http/endpoint.ts';
import type { Offer } from '../apps/offer.ts';

/** A call of a tool, or of what is named like one. */
export interface AgentCall {
  readonly tool: string;
  readonly arguments: Readonly<Record<string, unknown>>;
  readonly context: Omit<RequestContext, 'mediaType'>;
}

/** What a call gave. */
export interface AgentAnswer {
  /** As /t/<tool> answers it. */
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

export interface AgentOptions {
  readonly offer: Offer;
  /** @throws Problem */
  readonly call: (call: AgentCall) => Promise<AgentAnswer>;
}
