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

export interface AgentOptions {
  readonly offer: Offer;
  /** @throws Problem */
  readonly call: (call: AgentCall) => Promise<AgentAnswer>;
}
