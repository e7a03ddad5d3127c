// A tool's result as MCP content: structured, the same as text, its file as a link and, when small, embedded.
import type {
  BlobResourceContents,
  CallToolResult,
  ContentBlock,
  TextResourceContents,
} from '@modelcontextprotocol/server';
import { problemBody, type Problem } from '../../../lib/problem.ts';
import { type Artifact, envelopeOf, isEmbeddable, type ToolResult } from '../../tools/index.ts';

/** What clients can show as an image. SVG is text to them. */
const images = /^image\/(png|jpeg|gif|webp)$/;
const texts = /^(text\/|image\/svg\+xml|application\/(json|[a-z0-9.-]+\+(json|xml)|xml)$)/;

/** `raw`: the file is wanted inside whatever its size. */
export function resultOf(result: ToolResult, raw: boolean): CallToolResult {
  const structuredContent = envelopeOf(result, false);
  const { meta, run } = result;
  const artifact = run?.artifact;
  return {
    structuredContent,
    content: [
      { type: 'text', text: JSON.stringify(structuredContent) },
      ...(artifact === undefined || meta.fileUrl === undefined ? [] : [linkOf(artifact, meta.fileUrl)]),
      ...(artifact !== undefined && (raw || isEmbeddable(artifact, meta))
        ? [embedded(artifact, meta.fileUrl ?? `moorage:file/${meta.requestId}/${artifact.fileName}`)]
        : []),
    ],
  };
}

export function problemResult(problem: Problem, baseUrl: string, tool: string, requestId: string): CallToolResult {
  const body = problemBody(problem, baseUrl, `/mcp#${tool}`, requestId);
  return {
    isError: true,
    structuredContent: { problem: body, request_id: requestId },
    content: [{ type: 'text', text: JSON.stringify(body) }],
  };
}

function linkOf({ fileName, mediaType, bytes }: Artifact, uri: string): ContentBlock {
  return { type: 'resource_link', uri, name: fileName, mimeType: mediaType, size: bytes.length };
}

function embedded({ bytes, mediaType }: Artifact, uri: string): ContentBlock {
  if (images.test(mediaType)) return { type: 'image', data: bufferOf(bytes).toString('base64'), mimeType: mediaType };
  if (mediaType.startsWith('audio/'))
    return { type: 'audio', data: bufferOf(bytes).toString('base64'), mimeType: mediaType };
  return { type: 'resource', resource: contentsOf({ bytes, mediaType }, uri) };
}

/** A file as a resource: text as it is, all else in base64. */
export function contentsOf(
  { bytes, mediaType }: Pick<Artifact, 'bytes' | 'mediaType'>,
  uri: string,
): TextResourceContents | BlobResourceContents {
  if (texts.test(mediaType)) return { uri, mimeType: mediaType, text: bufferOf(bytes).toString('utf8') };
  return { uri, mimeType: mediaType, blob: bufferOf(bytes).toString('base64') };
}

function bufferOf(bytes: Uint8Array): Buffer {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}
