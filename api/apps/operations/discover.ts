// Discovers the operations of an app: from its MCP endpoint, or where there is none from its OpenAPI document.
import { z } from 'zod';
import { Problem } from '../../../lib/problem.ts';
import type { Workers } from '../../tools/index.ts';
import { readContent, type ResponseContent } from '../calls/response.ts';
import { appPath } from '../calls/app-path.ts';
import type { AppClient } from '../calls/app-client.ts';
import type { AgentPaths, Target } from '../directory.ts';
import { listMcpTools } from './app-mcp.ts';
import { operationList, type OperationList } from './operation.ts';
import type { AppDescription } from './worker.ts';

const module = new URL('worker.ts', import.meta.url);
const read = operationList.extend({ fault: z.string().optional() });
/** Longest description of an app. */
const maxBytes = 2 * 1_048_576;
/** An app that does not speak MCP may never respond; its OpenAPI document is still to be read then. */
const mcpLimitMs = 5_000;

export interface DiscovererOptions {
  readonly appClient: AppClient;
  readonly workers: Workers;
}

export type DiscoverOperations = (
  target: Target,
  agentPaths: AgentPaths,
  signal: AbortSignal,
) => Promise<OperationList>;

/** Thrown when an app has no description that can be read; the message says why, for its author. */
export class DiscoveryError extends Error {
  override readonly name = 'DiscoveryError';
}

/** @returns the discovery for one app. It throws DiscoveryError. */
export function operationDiscoverer({ appClient, workers }: DiscovererOptions): DiscoverOperations {
  return async (target, agentPaths, signal) => {
    const { slug } = target;
    const tools = await listMcpTools({
      appClient,
      target,
      path: agentPaths.mcp,
      id: 'operations',
      signal,
      maxBytes,
      limitMs: mcpLimitMs,
    }).catch(() => undefined);
    if (Array.isArray(tools) && tools.length > 0) return readOperations(target, { kind: 'mcp', slug, tools }, signal);
    const none = `There is no MCP endpoint at ${agentPaths.mcp}, and`;
    const { status, bytes } = await openApiOf(target, agentPaths, signal).catch((error: unknown) => {
      throw new DiscoveryError(
        `${none} GET ${agentPaths.openapi} failed: ${error instanceof Error ? error.message : 'unknown error'}`,
      );
    });
    if (status !== 200) throw new DiscoveryError(`${none} GET ${agentPaths.openapi} returned status ${status}.`);
    return readOperations(
      target,
      { kind: 'openapi', slug, text: new TextDecoder().decode(bytes) },
      signal,
      `${none} ${agentPaths.openapi}`,
    );
  };

  async function openApiOf(target: Target, { openapi }: AgentPaths, signal: AbortSignal): Promise<ResponseContent> {
    const response = await appClient.send(target, {
      method: 'GET',
      path: appPath(openapi) ?? '/openapi.json',
      headers: { accept: 'application/json, application/yaml;q=0.8, */*;q=0.5' },
      isLook: true,
      id: 'operations',
      signal,
    });
    return readContent(target, response);
  }

  async function readOperations(
    target: Target,
    description: AppDescription,
    signal: AbortSignal,
    where = '',
  ): Promise<OperationList> {
    const { fault, ...found } = read.parse(
      await workers
        .run(
          { module, input: description, timeoutMs: 15_000, memoryMb: 128 }, // The apps of one author take their turns as one caller.
          { owner: target.author, signal },
        )
        .catch((error: unknown) => {
          if (error instanceof Problem)
            throw new DiscoveryError(`The description of the app could not be read: ${error.message}`, {
              cause: error,
            });
          throw error;
        }),
    );
    if (fault !== undefined) throw new DiscoveryError(`${where} ${fault}`.trim());
    return found;
  }
}
