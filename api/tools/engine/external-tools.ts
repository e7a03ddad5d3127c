// Tools beside those of the registry, which come and go while the process runs.
import type { CallToolResult, Tool as ListedTool } from '@modelcontextprotocol/server';
import type { RequestContext } from '../../http/index.ts';

export interface MoreCall {
  readonly given: Readonly<Record<string, unknown>>;
  readonly context: Omit<RequestContext, 'mediaType'>;
  readonly signal: AbortSignal;
}

export interface MoreTools {
  /** All that there are now, in a steady order. Waits for nobody. */
  list(): readonly ListedTool[];
  /** One of them. What can go wrong with its call is thrown as a Problem. */
  find(name: string): Promise<{ call(call: MoreCall): Promise<CallToolResult> } | undefined>;
}

export const noMoreTools: MoreTools = { list: () => [], find: () => Promise.resolve(undefined) };
