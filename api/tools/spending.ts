// How a tool asks models: what it may ask, and what it hears back. Implemented over the meter, so that each call is booked.

export interface Prompt {
  /** Id of a model of /api/models; the default model when left out. */
  readonly model?: string;
  readonly prompt: string;
  readonly system?: string;
  readonly maxTokens?: number;
  /** Replaces the call's own signal, for one that must end earlier. */
  readonly signal?: AbortSignal;
}

export interface Reply {
  readonly model: string;
  readonly text: string;
  /** Why the answer ends: stop, or length when it was cut. */
  readonly finishReason: string | undefined;
  readonly latencyMs: number;
}

/** Asks models on behalf of a caller. What it spends is part of the cost of the tool's call. */
export interface Spender {
  /** @throws Problem (quota-exhausted, key-required, models-unconfigured, model-failed, ...) */
  ask(prompt: Prompt): Promise<Reply>;
}
