// Converts tool results and files to MCP content, and serves guides and files as resources.
import {
  type BlobResourceContents,
  type CallToolResult,
  type ContentBlock,
  type TextResourceContents,
  ResourceNotFoundError,
  type McpServer,
  type ReadResourceResult,
} from '@modelcontextprotocol/server';
import { buildProblemBody, Problem } from '../../../lib/problem.ts';
import {
  type Artifact,
  toEnvelope,
  isEmbeddable,
  type ToolResult,
  type ArtifactStore,
  buildArtifactUrl,
} from '../../tools/index.ts';
import type { Guides } from '../../catalog/index.ts';

/** Types that clients can show as an image. They treat SVG as text. */
const images = /^image\/(png|jpeg|gif|webp)$/;
const texts = /^(text\/|image\/svg\+xml|application\/(json|[a-z0-9.-]+\+(json|xml)|xml)$)/;

/**
 * Converts a result to MCP content: structured, the same as text, and its file as a link. Small files, and all files if
 * `raw` is set, are embedded too.
 */
export function toCallResult(result: ToolResult, raw: boolean): CallToolResult {
  const structuredContent = toEnvelope(result, false);
  const { meta, run } = result;
  const artifact = run?.artifact;
  return {
    structuredContent,
    content: [
      { type: 'text', text: JSON.stringify(structuredContent) },
      ...(artifact === undefined || meta.fileUrl === undefined ? [] : [toResourceLink(artifact, meta.fileUrl)]),
      ...(artifact !== undefined && (raw || isEmbeddable(artifact, meta))
        ? [embedArtifact(artifact, meta.fileUrl ?? `moorage:file/${meta.requestId}/${artifact.fileName}`)]
        : []),
    ],
  };
}

export function toProblemResult(problem: Problem, baseUrl: string, tool: string, requestId: string): CallToolResult {
  const body = buildProblemBody(problem, baseUrl, `/mcp#${tool}`, requestId);
  return {
    isError: true,
    structuredContent: { problem: body, request_id: requestId },
    content: [{ type: 'text', text: JSON.stringify(body) }],
  };
}

function toResourceLink({ fileName, mediaType, bytes }: Artifact, uri: string): ContentBlock {
  return { type: 'resource_link', uri, name: fileName, mimeType: mediaType, size: bytes.length };
}

function embedArtifact({ bytes, mediaType }: Artifact, uri: string): ContentBlock {
  if (images.test(mediaType)) return { type: 'image', data: toBuffer(bytes).toString('base64'), mimeType: mediaType };
  if (mediaType.startsWith('audio/'))
    return { type: 'audio', data: toBuffer(bytes).toString('base64'), mimeType: mediaType };
  return { type: 'resource', resource: toResourceContents({ bytes, mediaType }, uri) };
}

/** Converts a file to a resource: text as is, everything else in base64. */
export function toResourceContents(
  { bytes, mediaType }: Pick<Artifact, 'bytes' | 'mediaType'>,
  uri: string,
): TextResourceContents | BlobResourceContents {
  if (texts.test(mediaType)) return { uri, mimeType: mediaType, text: toBuffer(bytes).toString('utf8') };
  return { uri, mimeType: mediaType, blob: toBuffer(bytes).toString('base64') };
}

function toBuffer(bytes: Uint8Array): Buffer {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}

export interface ResourcesOptions {
  readonly baseUrl: string;
  readonly artifacts: Pick<ArtifactStore, 'get'>;
  readonly guides: Pick<Guides, 'links' | 'getRecord'>;
}

const json = 'application/json';

/**
 * Serves the guides, which are listed, and files that tools created, so that a client can read a resource_link over the
 * same connection. Files are not listed: knowing the URI of a file is the permission to read it, and only its creator
 * has the URI.
 */
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
        uriTemplate: buildArtifactUrl(baseUrl, '{id}'),
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
  const guide = link === undefined ? undefined : await guides.getRecord(link.slug);
  if (guide !== undefined) return { contents: [{ uri, mimeType: json, text: JSON.stringify(guide) }] };
  const start = buildArtifactUrl(baseUrl, '');
  const file = uri.startsWith(start) ? await artifacts.get(uri.slice(start.length)).catch(ignoreProblem) : undefined;
  if (file === undefined)
    throw new ResourceNotFoundError(
      uri.slice(0, 500),
      'There is no file at this URI, or it has expired. Call the tool again to create it again.',
    );
  return { contents: [toResourceContents(file, uri)] };
}

/** Without a database there are no files either. */
function ignoreProblem(error: unknown): undefined {
  if (!(error instanceof Problem)) throw error;
}
