// Files that tools have made, as MCP resources: what a resource_link names can be read through the same connection.
import { ResourceNotFoundError, type McpServer, type ReadResourceResult } from '@modelcontextprotocol/server';
import { artifactUrl } from '../tools/engine/artifacts/endpoint.ts';
import type { ArtifactStore } from '../tools/engine/artifacts/artifact-store.ts';
import { Problem } from '../../lib/problem.ts';
import { contentsOf } from './content.ts';

export interface ResourcesOptions {
  readonly baseUrl: string;
  readonly artifacts: Pick<ArtifactStore, 'get'>;
}

/** Nothing is listed: the address of a file is the permission to read it, and only its maker was told it. */
export function offerResources({ server }: McpServer, { baseUrl, artifacts }: ResourcesOptions): void {
  server.setRequestHandler('resources/list', () => ({ resources: [] }));
  server.setRequestHandler('resources/templates/list', () => ({
    resourceTemplates: [
      {
        uriTemplate: artifactUrl(baseUrl, '{id}'),
        name: 'file',
        title: 'A file that a tool has made',
        description: 'As a resource_link in the answer of a tool names it. Kept for an hour, of a job for a day.',
      },
    ],
  }));
  server.setRequestHandler('resources/read', ({ params: { uri } }) => read(uri, { baseUrl, artifacts }));
}

async function read(uri: string, { baseUrl, artifacts }: ResourcesOptions): Promise<ReadResourceResult> {
  const start = artifactUrl(baseUrl, '');
  const file = uri.startsWith(start) ? await artifacts.get(uri.slice(start.length)).catch(absent) : undefined;
  if (file === undefined)
    throw new ResourceNotFoundError(
      uri.slice(0, 500),
      'no file is kept at this address, or no longer; call the tool again to have it made anew',
    );
  return { contents: [contentsOf(file, uri)] };
}

/** Where there is no database, there is no file either. */
function absent(error: unknown): undefined {
  if (!(error instanceof Problem)) throw error;
}
