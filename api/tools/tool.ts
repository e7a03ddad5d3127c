// defineTool(): one definition of a tool gives its route, its MCP tool, its OpenAPI path and its entries in the
// discovery documents.
import type { z } from 'zod';
import type { Logger } from '../../lib/telemetry.ts';
import type { ServiceName } from './services/backing-services.ts';
import type { Spender } from './engine/spender.ts';

/** A file that a tool created. `raw=1` returns its bytes alone. */
export interface Artifact {
  readonly bytes: Uint8Array;
  /** Like `image/svg+xml`. */
  readonly mediaType: string;
  /** Like `diagram.svg`: ASCII, no path. */
  readonly fileName: string;
}

/** What a tool knows of a call besides its validated input. */
export interface ToolContext {
  /** Id of the request, in the log and in problems. */
  readonly id: string;
  /**
   * Optional name by which a caller groups calls (query parameter `s`). Never changes a result, except where memory is
   * kept.
   */
  readonly session: string | undefined;
  /** Whose calls these are: a salted hash of the key or of the address. */
  readonly owner: string;
  /** Whether the caller sent a key that the router accepts. */
  readonly keyed: boolean;
  /** Aborted when the caller goes away, when the call takes too long, or when the process ends. */
  readonly signal: AbortSignal;
  readonly log: Logger;
  /** Stops the clock of the call until this is over: for waits in a queue, which are not the work of the call. */
  readonly waiting: <Value>(wait: Promise<Value>) => Promise<Value>;
  /** Calls models, and charges each call to this caller through the ledger. */
  readonly models: Spender;
  /** Reports the progress of a long call. Shown in a job's status and as MCP progress. */
  readonly report: (progress: Progress) => void;
}

export interface Progress {
  /** From 0 to 1. */
  readonly done: number;
  readonly message: string;
}

/** What a tool returns. */
export interface ToolAnswer<Result> {
  readonly result: Result;
  readonly artifact?: Artifact;
}

/** A tool as its author writes it. Refuses by throwing a Problem. */
export interface ToolDefinition<Input extends z.ZodObject, Output extends z.ZodObject> {
  /** In snake_case; the last part of `/t/<name>`. */
  readonly name: string;
  readonly title: string;
  /** For agents and people: what it does, when to use it, what it returns, and its limits. */
  readonly description: string;
  /**
   * Strict object with flat fields; each described. Text from a query is turned into numbers, booleans and lists as the
   * fields say.
   */
  readonly input: Input;
  /** Other names of fields, as others call them: alias to field. */
  readonly aliases?: Readonly<Record<string, keyof z.input<Input> & string>>;
  readonly output: Output;
  /** A call that works, for documents and tests. */
  readonly example: z.input<Input>;
  /** USD per call, without the cost of its model calls; '0' where a call costs next to nothing. */
  readonly price: string;
  /** Media types of its artifact, the usual one first; undefined if it creates none. */
  readonly artifacts?: readonly string[];
  /** The backing service without which it cannot work. */
  readonly needs?: ServiceName;
  /** Whether it asks models, and so needs a model router. */
  readonly asksModels?: boolean;
  /** Whether it reaches out to the internet. */
  readonly openWorld: boolean;
  /** Whether it changes anything that a later call sees; default false. */
  readonly writes?: boolean;
  /**
   * Whether a call with this input changes what is kept. A page of any site can make a browser send a GET, so such a call
   * is a POST; default: no call does.
   */
  readonly changes?: (input: z.output<Input>) => boolean;
  /** Runs as a job: answered with a handle at once, or with the result within `wait` seconds; default false. */
  readonly long?: boolean;
  /** Time limit of a call in ms; default 30 000, or 600 000 for a long tool. */
  readonly limitMs?: number;
  run(input: z.output<Input>, context: ToolContext): Promise<ToolAnswer<z.input<Output>>>;
}

/** A tool as the registry holds it. */
export type Tool = Omit<ToolDefinition<z.ZodObject, z.ZodObject>, 'run' | 'aliases' | 'changes'> & {
  readonly aliases: Readonly<Record<string, string>>;
  changes(input: Record<string, unknown>): boolean;
  run(input: Record<string, unknown>, context: ToolContext): Promise<ToolAnswer<Record<string, unknown>>>;
};

/** Defines a tool. Its input has been validated by `input` before `run` sees it. */
export function defineTool<Input extends z.ZodObject, Output extends z.ZodObject>(
  definition: ToolDefinition<Input, Output>,
): Tool {
  return {
    ...definition,
    aliases: definition.aliases ?? {},
    changes: (input) => definition.changes?.(input as z.output<Input>) ?? false,
    run: async (input, context) => definition.run(input as z.output<Input>, context),
  };
}
