// Reads a caller's file, within a size limit: from a URL, from inline data, or from an earlier call's artifact.
import { Problem } from '../../../lib/problem.ts';
import { createValidationProblem } from '../../http/index.ts';
import { type ArtifactStore, parseArtifactId, buildArtifactUrl } from '../engine/artifacts.ts';
import { unknownFile, toolLimit, fetchTooLarge } from '../problems.ts';
import type { Fetcher, FetchRequest, FetchResult } from '../fetch/fetcher.ts';
import type { Artifact } from '../tool.ts';
import { parseData, requireOne, fileFieldNames, type GivenFile } from './fields.ts';

export interface FileSources {
  readonly baseUrl: string;
  readonly fetcher: Fetcher;
  readonly artifacts: Pick<ArtifactStore, 'get'>;
}

export interface FileLimits {
  readonly maxBytes: number;
  /** Accept header, if the file is fetched. */
  readonly accept?: string;
  readonly timeoutMs?: number;
  readonly signal: AbortSignal;
}

export interface InputFile {
  readonly bytes: Uint8Array;
  /** In lower case without parameters; application/octet-stream if unknown. */
  readonly mediaType: string;
  /** The original content type with parameters. */
  readonly contentType: string;
  /** Final URL after redirects; undefined for data. */
  readonly url: string | undefined;
  /** Last segment of the path, or the artifact's name; undefined for data. */
  readonly fileName: string | undefined;
  /** Whether the bytes did not come over the network, so that other programs cannot open them by URL. */
  readonly local: boolean;
}

/**
 * Reads exactly one of the three. The URL of an artifact of this installation is read from the store: the guard would reject
 * a local installation's address, and for others it would be a detour. @throws Problem: invalid-request, unknown-file,
 * tool-limit, url-refused, fetch-failed, fetch-too-large
 */
export async function readFile(sources: FileSources, given: GivenFile, limits: FileLimits): Promise<InputFile> {
  requireOne(fileFieldNames, { ...given });
  const { url, data, artifact } = given;
  if (data !== undefined) return readFromData(data, limits);
  const field = artifact === undefined ? 'url' : 'artifact';
  const id = parseArtifactId(sources.baseUrl, artifact ?? url ?? '', field);
  if (id !== undefined) return readFromStore(sources, { id, field }, limits);
  if (url !== undefined) return readFromWeb(sources, url, limits);
  throw createValidationProblem([
    {
      in: 'query',
      field,
      message: 'is neither the id nor the URL of a file that this installation created',
      fix: `Send the URL of an artifact, such as ${buildArtifactUrl(sources.baseUrl, '<id>')}, or its id alone. For another address, use url.`,
    },
  ]);
}

async function readFromWeb({ fetcher }: FileSources, url: string, limits: FileLimits): Promise<InputFile> {
  const { maxBytes, accept, timeoutMs, signal } = limits;
  const file = await fetcher.get({
    url,
    maxBytes,
    signal,
    ...(accept === undefined ? {} : { headers: { accept } }),
    ...(timeoutMs === undefined ? {} : { timeoutMs }),
  });
  return {
    bytes: file.bytes,
    mediaType: file.mediaType,
    contentType: file.headers.get('content-type') ?? '',
    url: file.url,
    fileName: new URL(file.url).pathname.split('/').at(-1),
    local: false,
  };
}

function readFromData(data: string, { maxBytes }: FileLimits): InputFile {
  const { bytes, contentType } = parseData(data);
  refuseLarge(bytes, 'data', maxBytes);
  return { ...parseContentType(contentType), bytes, url: undefined, fileName: undefined, local: true };
}

/** The id is the permission to read the file, as for GET of the artifact. */
async function readFromStore(
  { artifacts, baseUrl }: FileSources,
  { id, field }: { readonly id: string; readonly field: string },
  { maxBytes }: FileLimits,
): Promise<InputFile> {
  const file: Artifact | undefined = await artifacts.get(id);
  if (file === undefined)
    throw new Problem(unknownFile, `The file in ${field} is not stored here; it may have expired.`, {
      errors: [
        {
          in: 'query',
          field,
          message: 'is not stored here; it may have expired',
          fix: 'Call the tool that created it again, and send the URL of the new artifact.',
        },
      ],
    });
  refuseLarge(file.bytes, field, maxBytes);
  const { bytes, mediaType, fileName } = file;
  return { ...parseContentType(mediaType), bytes, url: buildArtifactUrl(baseUrl, id), fileName, local: true };
}

function parseContentType(contentType: string): Pick<InputFile, 'mediaType' | 'contentType'> {
  const mediaType = (contentType.split(';')[0] ?? '').trim().toLowerCase();
  return { contentType, mediaType: mediaType === '' ? 'application/octet-stream' : mediaType };
}

function refuseLarge({ length }: Uint8Array, field: string, maxBytes: number): void {
  if (length <= maxBytes) return;
  const message = `has ${length} bytes; the maximum for this tool is ${maxBytes}`;
  throw new Problem(toolLimit, `The file in ${field} ${message}.`, {
    errors: [{ in: 'query', field, message, fix: `Send a file of at most ${maxBytes} bytes.` }],
    members: { limit_bytes: maxBytes },
  });
}

type Sources = Pick<FileSources, 'artifacts' | 'baseUrl'>;

/** Maximum bytes of all files that one page embeds. */
const maxEmbeddedBytes = 20_000_000;

/** Wraps a fetcher so that URLs of this installation's artifacts are read from the store. No other URL of it is reachable. */
export function createArtifactFetcher(fetcher: Fetcher, sources: Sources): Fetcher {
  const answer = async (request: FetchRequest): Promise<FetchResult | undefined> => {
    const id = parseArtifactId(sources.baseUrl, request.url, 'url');
    if (id === undefined) return undefined;
    const { bytes, mediaType } = await readArtifact(sources, id, request.field ?? 'url');
    if (bytes.length > request.maxBytes)
      throw new Problem(fetchTooLarge, `The file has ${bytes.length} bytes; the limit is ${request.maxBytes} bytes.`, {
        members: { limit_bytes: request.maxBytes },
      });
    const type = mediaType.split(';', 1)[0]?.trim().toLowerCase() ?? '';
    const headers = new Headers({ 'content-type': mediaType });
    return { url: buildArtifactUrl(sources.baseUrl, id), status: 200, headers, mediaType: type, bytes };
  };
  return {
    fetch: async (request) => (await answer(request)) ?? fetcher.fetch(request),
    get: async (request) => (await answer(request)) ?? fetcher.get(request),
    check: (request) => fetcher.check(request),
  };
}

/** URLs that HTML and CSS load; a URL in text or in a link stays unchanged. */
const loads =
  /(<(?:img|input|source|audio|video|embed)\b[^>]*?\ssrc\s*=\s*["']?|<video\b[^>]*?\sposter\s*=\s*["']?|<image\b[^>]*?\shref\s*=\s*["']?|\burl\(\s*["']?)(https?:\/\/[^"'\s)>]+)/gi;

/**
 * Embeds the artifacts that a page shows, because a browser that prints the page may not reach this installation. `field`:
 * the input field with the page. @throws Problem (unknown-file) if one is not stored: the page would show a gap
 */
export async function embedArtifacts(html: string, sources: Sources, field: string): Promise<string> {
  const ids = new Set(
    [...html.matchAll(loads)].flatMap(([, , url = '']) => parseArtifactId(sources.baseUrl, url, 'url') ?? []),
  );
  if (ids.size === 0) return html;
  const embedded = new Map<string, string>();
  let bytes = 0;
  for (const id of ids) {
    const file = await readArtifact(sources, id, field);
    bytes += file.bytes.length;
    if (bytes > maxEmbeddedBytes)
      throw new Problem(toolLimit, `The files in ${field} have more than ${maxEmbeddedBytes / 1e6} MB together.`);
    embedded.set(
      id,
      `data:${file.mediaType.replaceAll(/[\s"']/g, '')};base64,${Buffer.from(file.bytes).toString('base64')}`,
    );
  }
  return html.replaceAll(loads, (all, before: string, url: string) => {
    const data = embedded.get(parseArtifactId(sources.baseUrl, url, 'url') ?? '');
    return data === undefined ? all : `${before}${data}`;
  });
}

async function readArtifact({ artifacts, baseUrl }: Sources, id: string, field: string): Promise<Artifact> {
  const file = await artifacts.get(id);
  if (file !== undefined) return file;
  throw new Problem(unknownFile, `The file in ${field} is not stored here; it may have expired.`, {
    errors: [
      {
        in: 'query',
        field,
        message: `names ${buildArtifactUrl(baseUrl, id)}, which is not stored here; it may have expired`,
        fix: 'Call the tool that created it again, and use the URL of the new artifact.',
      },
    ],
  });
}
