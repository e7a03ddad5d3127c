// Files that tools created, as MCP resources: a resource_link can be read through the same connection.
import { ResourceNotFoundError, type McpServer, type ReadResourceResult } from '@modelcontextprotocol/server';
import { type ArtifactStore, artifactUrl } from '../tools/index.ts';
import { Problem } from '../../lib/problem.ts';
import { contentsOf } from './content.ts';

export interface ResourcesOptions {
  readonly baseUrl: string;
  readonly artifacts: Pick<ArtifactStore, 'get'>;
}

/** Nothing is listed: the URI of a file is the permission to read it, and only its creator has it. */
export function offerResources({ server }: McpServer, { baseUrl, artifacts }: ResourcesOptions): void {
  server.setRequestHandler('resources/list', () => ({ resources: [] }));
  server.setRequestHandler('resources/templates/list', () => ({
    resourceTemplates: [
      {
        uriTemplate: artifactUrl(baseUrl, '{id}'),
        name: 'file',
        title: 'File created by a tool',
        description:
          'The target of a resource_link in a tool result. Files are stored for one hour, files of jobs for 24 hours.',
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
      'There is no file at this URI, or it has expired. Call the tool again to create it again.',
    );
  return { contents: [contentsOf(file, uri)] };
}

/** Where there is no database, there is no file either. */
function absent(error: unknown): undefined {
  if (!(error instanceof Problem)) throw error;
}
