// Finds tools by name, suggests names for a misspelled one, and explains why a tool is not available here.
import type { CallToolResult, Tool as ListedTool } from '@modelcontextprotocol/server';
import { Problem } from '../../../lib/problem.ts';
import { createUnknownNameProblem } from '../../../lib/problem.ts';
import { explainServiceOff, type OffCauses, type ServiceUrls } from '../services/backing-services.ts';
import { serviceOff, unknownTool } from '../problems.ts';
import type { Tool } from '../tool.ts';
import type { CallContext } from '../../http/index.ts';

export interface ToolRegistryOptions {
  readonly tools: readonly Tool[];
  readonly urls: ServiceUrls;
  /** Why services are off, if the operator has set a reason. */
  readonly offCauses?: OffCauses;
  /** What is missing for calling models; undefined where nothing is. */
  readonly modelsMissing: string | undefined;
}

export class ToolRegistry {
  readonly tools: readonly Tool[];
  readonly #options: ToolRegistryOptions;
  readonly #byName: ReadonlyMap<string, Tool>;

  constructor(options: ToolRegistryOptions) {
    this.#options = options;
    this.tools = options.tools;
    this.#byName = new Map(options.tools.map((tool) => [tool.name, tool]));
  }

  /** `others`: further names to suggest. @throws Problem (unknown-tool) */
  get(name: string, others: readonly string[] = []): Tool {
    const tool = this.#byName.get(name);
    if (tool === undefined) throw createUnknownToolProblem(name, [...this.#byName.keys(), ...others]);
    return tool;
  }

  /** Why a tool is not available here, and which setting enables it; undefined when it is available. */
  explainOff({ needs, asksModels }: Tool): string | undefined {
    if (needs !== undefined && this.#options.urls[needs] === undefined)
      return explainServiceOff(needs, this.#options.offCauses?.[needs]);
    return asksModels === true ? this.#options.modelsMissing : undefined;
  }

  /** @throws Problem (service-off) when the service of this tool is off */
  assertServiceOn({ needs }: Tool): void {
    if (needs !== undefined && this.#options.urls[needs] === undefined)
      throw new Problem(serviceOff, explainServiceOff(needs, this.#options.offCauses?.[needs]), {
        members: { service: needs },
      });
  }
}

function createUnknownToolProblem(name: string, names: readonly string[]): Problem {
  return createUnknownNameProblem(unknownTool, { says: 'Unknown tool', name, names, all: 'GET /t lists all tools.' });
}

export interface ExternalToolCall {
  readonly given: Readonly<Record<string, unknown>>;
  readonly context: CallContext;
  readonly signal: AbortSignal;
}

/** A search for words in the operations of all apps, or of one app. */
export interface ExternalSearch {
  readonly query: string;
  readonly app?: string | undefined;
  readonly limit: number;
}

export interface ExternalTool {
  /** The app that it belongs to. */
  readonly app: string;
  call(call: ExternalToolCall): Promise<CallToolResult>;
}

/** One that a search found. */
export interface FoundTool extends ListedTool {
  readonly app: string;
}

/** Tools that come and go while the process runs: operations of hosted apps. */
export interface ExternalTools {
  /** Lists the tools of one app in a stable order. @throws Problem (unknown-app, app-not-live) */
  list(app: string): readonly ListedTool[];
  /** Returns the best matches first, and the total number. @throws Problem (unknown-app, app-not-live) */
  search(search: ExternalSearch): { readonly found: readonly FoundTool[]; readonly total: number };
  /** All current names, for suggestions. */
  names(): readonly string[];
  /** Finds a tool by its current or a former name. Its `call` throws a Problem on failure. */
  find(name: string): Promise<ExternalTool | undefined>;
}

export const noExternalTools: ExternalTools = {
  list: () => [],
  search: () => ({ found: [], total: 0 }),
  names: () => [],
  find: () => Promise.resolve(undefined),
};
