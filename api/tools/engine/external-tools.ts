// Tools besides the built-in ones, which come and go while the process runs.
import type { CallToolResult, Tool as ListedTool } from '@modelcontextprotocol/server';
import type { RequestContext } from '../../http/index.ts';

export interface ExternalToolCall {
  readonly given: Readonly<Record<string, unknown>>;
  readonly context: Omit<RequestContext, 'mediaType'>;
  readonly signal: AbortSignal;
}

export interface ExternalTools {
  /** All current ones, in a stable order. Does not wait. */
  list(): readonly ListedTool[];
  /** One of them. Its call throws a Problem when it fails. */
  find(name: string): Promise<{ call(call: ExternalToolCall): Promise<CallToolResult> } | undefined>;
}

export const noExternalTools: ExternalTools = { list: () => [], find: () => Promise.resolve(undefined) };
