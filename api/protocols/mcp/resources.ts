// MCP resources: the guides, which are listed, and files that tools created, so that a resource_link can be read through
// the same connection.
import { ResourceNotFoundError, type McpServer, type ReadResourceResult } from '@modelcontextprotocol/server';
import { type ArtifactStore, artifactUrl } from '../../tools/index.ts';
import type { Guides } from '../../catalog/index.ts';
import { Problem } from '../../../lib/problem.ts';
import { contentsOf } from './content.ts';

export interface ResourcesOptions {
  readonly baseUrl: string;
  readonly artifacts: Pick<ArtifactStore, 'get'>;
  readonly guides: Pick<Guides, 'links' | 'guide'>;
}

const json = 'application/json';

/** Files are not listed: the URI of a file is the permission to read it, and only its creator has it. */
export function offerResources({ server }: McpServer, { baseUrl, artifacts, guides }: ResourcesOptions): void {
  server.setRequestHandler('resources/list', () => ({
    resources: guides.links.map(({ slug, question, machine_readable }) => ({
      uri: machine_readable,
      name: slug,
      title: question,
      description: 'Guide: an answer, the tool that applies, steps to execute and measured evidence.',
      mimeType: json,
    })),
  }));
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
  server.setRequestHandler('resources/read', ({ params: { uri } }) => read(uri, { baseUrl, artifacts, guides }));
}

async function read(uri: string, { baseUrl, artifacts, guides }: ResourcesOptions): Promise<ReadResourceResult> {
  const link = guides.links.find(({ machine_readable }) => machine_readable === uri);
  const guide = link === undefined ? undefined : await guides.guide(link.slug);
  if (guide !== undefined) return { contents: [{ uri, mimeType: json, text: JSON.stringify(guide) }] };
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
