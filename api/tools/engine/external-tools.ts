// Tools besides the built-in ones, which come and go while the process runs: operations of hosted apps.
import type { CallToolResult, Tool as ListedTool } from '@modelcontextprotocol/server';
import type { CallContext } from '../../http/index.ts';

export interface ExternalToolCall {
  readonly given: Readonly<Record<string, unknown>>;
  readonly context: CallContext;
  readonly signal: AbortSignal;
}

/** What is searched for: words, in any of the apps or in one of them. */
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

export interface ExternalTools {
  /** Those of one app, in a stable order. @throws Problem (unknown-app, app-not-live) */
  list(app: string): readonly ListedTool[];
  /** The best matches first, and how many there are. @throws Problem (unknown-app, app-not-live) */
  search(search: ExternalSearch): { readonly found: readonly FoundTool[]; readonly total: number };
  /** All current names, to suggest one. */
  names(): readonly string[];
  /** One of them, by its name or a former one. Its call throws a Problem when it fails. */
  find(name: string): Promise<ExternalTool | undefined>;
}

export const noExternalTools: ExternalTools = {
  list: () => [],
  search: () => ({ found: [], total: 0 }),
  names: () => [],
  find: () => Promise.resolve(undefined),
};
