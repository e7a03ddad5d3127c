// defineTool() and its types: from one definition derive a tool's route, MCP tool, OpenAPI path and discovery entries.
import type { z } from 'zod';
import type { Logger } from '../../lib/telemetry.ts';
import type { ServiceName, ServiceUrls } from './services/backing-services.ts';
import type { Spender } from './engine/spender.ts';
import type { Database } from '../billing/index.ts';
import type { Catalog, ModelServices } from '../models/index.ts';
import type { Fetcher } from './fetch/fetcher.ts';
import type { ArtifactStore } from './engine/artifacts.ts';
import type { Workers } from './engine/workers/workers.ts';

/** A file that a tool created. `raw=1` returns its bytes alone. */
export interface Artifact {
  readonly bytes: Uint8Array;
  /** Like `image/svg+xml`. */
  readonly mediaType: string;
  /** Like `diagram.svg`: ASCII, no path. */
  readonly fileName: string;
}

/** What a tool receives with a call, besides its validated input. */
export interface ToolContext {
  /** Id of the request, in the log and in problems. */
  readonly id: string;
  /**
   * Optional name that groups a caller's calls (query parameter `s`). Never changes a result, except where memory is
   * kept.
   */
  readonly session: string | undefined;
  /** The caller: a salted hash of the key or of the network address. */
  readonly owner: string;
  /** Whether the caller sent a key that the router accepts. */
  readonly keyed: boolean;
  /** Aborted when the caller disconnects, the time limit is reached or the process ends. */
  readonly signal: AbortSignal;
  readonly log: Logger;
  /** Pauses the call's time limit while `wait` is pending: time in a queue does not count as work. */
  readonly waiting: <Value>(wait: Promise<Value>) => Promise<Value>;
  /** Calls models. The ledger charges each call to this caller. */
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

/** A tool as its author writes it. `run` rejects a call by throwing a Problem. */
export interface ToolDefinition<Input extends z.ZodObject, Output extends z.ZodObject> {
  /** In snake_case; the last part of `/t/<name>`. */
  readonly name: string;
  readonly title: string;
  /** For agents and people: what it does, when to use it, what it returns, and its limits. */
  readonly description: string;
  /**
   * Strict object with flat fields, each with a description. The fields' types decide how the text of a query becomes
   * numbers, booleans and lists.
   */
  readonly input: Input;
  /** Alternative names of fields: alias to field. */
  readonly aliases?: Readonly<Record<string, keyof z.input<Input> & string>>;
  readonly output: Output;
  /** A working call, for the documentation and tests. */
  readonly example: z.input<Input>;
  /** USD per call, without the cost of its model calls; '0' where a call costs next to nothing. */
  readonly price: string;
  /** Media types of its artifact, the usual one first; undefined if it creates none. */
  readonly artifacts?: readonly string[];
  /** The backing service without which it cannot work. */
  readonly needs?: ServiceName;
  /** Whether it calls models, and so needs a model router. */
  readonly asksModels?: boolean;
  /** Whether it accesses the internet. */
  readonly openWorld: boolean;
  /** Whether it changes anything that a later call sees; default false. */
  readonly writes?: boolean;
  /**
   * Whether a call with this input changes stored data. Any web page can make a browser send a GET, so such a call must
   * be a POST. Default: no call changes anything.
   */
  readonly changes?: (input: z.output<Input>) => boolean;
  /** Runs as a job: the response is a handle, or the result if it is ready within `wait` seconds. Default false. */
  readonly long?: boolean;
  /** Time limit of a call in ms; default 30 000, or 600 000 for a long tool. */
  readonly limitMs?: number;
  run(input: z.output<Input>, context: ToolContext): Promise<ToolAnswer<z.input<Output>>>;
}

/** A tool as the registry holds it. */
export type Tool = Omit<ToolDefinition<z.ZodObject, z.ZodObject>, 'run' | 'aliases' | 'changes'> & {
  readonly aliases: Readonly<Record<string, string>>;
  changes?(input: Record<string, unknown>): boolean;
  run(input: Record<string, unknown>, context: ToolContext): Promise<ToolAnswer<Record<string, unknown>>>;
};

/** Defines a tool. Its input has been validated by `input` before `run` sees it. */
export function defineTool<Input extends z.ZodObject, Output extends z.ZodObject>(
  definition: ToolDefinition<Input, Output>,
): Tool {
  return { ...definition, aliases: definition.aliases ?? {} };
}

/** What built-in tools depend on. Each tool receives it once, at start. */
export interface ToolDependencies {
  /** Public URL of this API, such as https://moorage.localhost. */
  readonly baseUrl: string;
  /** Base URLs of the backing services that are enabled. */
  readonly urls: ServiceUrls;
  /** Model that the speech server transcribes with. */
  readonly speechModel: string;
  /** Fetches public URLs that callers name, and nothing inside the network. */
  readonly fetcher: Fetcher;
  /** Files that tools created, as input of later calls. */
  readonly artifacts: Pick<ArtifactStore, 'get'>;
  /** Processes hostile input in separate processes with limits. */
  readonly workers: Workers;
  /** The models that can be called. */
  readonly catalog: Catalog;
  /** Tokens of an answer: the default and the maximum. */
  readonly maxTokens: ModelServices['maxTokens'];
  /** Hosted apps that are live now. */
  readonly apps: () => readonly HostedAppSummary[];
  /** @throws Problem (ledger-unavailable, models-unconfigured) while there is none */
  readonly database: () => Database;
}

export interface HostedAppSummary {
  readonly slug: string;
  readonly title: string;
  readonly description: string;
  readonly category: string | undefined;
  readonly url: string;
  /** Address of its source repository. */
  readonly repo: string;
}
