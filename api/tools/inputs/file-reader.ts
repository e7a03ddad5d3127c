// Reads the file that a caller names by URL, sends as data, or has from an earlier call, within one limit of bytes.
import { Problem } from '../../../lib/problem.ts';
import { createValidationProblem } from '../../http/index.ts';
import type { ArtifactStore } from '../engine/artifacts/artifact-store.ts';
import { artifactIdOf, artifactUrl } from '../engine/artifacts/endpoint.ts';
import { unknownFile } from '../engine/artifacts/problems.ts';
import type { Fetcher } from '../fetch/fetcher.ts';
import { toolLimit } from '../problems.ts';
import type { Artifact } from '../tool.ts';
import { dataBytes } from './data-bytes.ts';
import { requireOne } from './field-rules.ts';
import { fileFieldNames, type GivenFile } from './file-fields.ts';

export interface FileSources {
  readonly baseUrl: string;
  readonly fetcher: Fetcher;
  readonly artifacts: Pick<ArtifactStore, 'get'>;
}

export interface FileLimits {
  readonly maxBytes: number;
  /** Accept header, where the file is fetched. */
  readonly accept?: string;
  readonly timeoutMs?: number;
  readonly signal: AbortSignal;
}

export interface InputFile {
  readonly bytes: Uint8Array;
  /** Without parameters, in lower case; application/octet-stream where nothing says it. */
  readonly mediaType: string;
  /** The same with parameters, as it was sent. */
  readonly contentType: string;
  /** Where it came from, after redirects; undefined for data. */
  readonly url: string | undefined;
  /** Last part of its path or the name of the artifact; undefined for data. */
  readonly fileName: string | undefined;
  /** Whether the bytes came without the network, so that nobody else can open them by a URL. */
  readonly local: boolean;
}

/**
 * A URL of an artifact of this installation is read from where artifacts are stored: the guard would refuse the address
 * of a local installation, and to others it would be a detour. @throws Problem: invalid-request, unknown-file,
 * tool-limit, url-refused, fetch-failed, fetch-too-large
 */
export async function readFile(sources: FileSources, given: GivenFile, limits: FileLimits): Promise<InputFile> {
  requireOne(fileFieldNames, { ...given });
  const { url, data, artifact } = given;
  if (data !== undefined) return fromData(data, limits);
  const field = artifact === undefined ? 'url' : 'artifact';
  const id = artifactIdOf(sources.baseUrl, artifact ?? url ?? '', field);
  if (id !== undefined) return fromStore(sources, { id, field }, limits);
  if (url !== undefined) return fromWeb(sources, url, limits);
  throw createValidationProblem([
    {
      in: 'query',
      field,
      message: 'is neither the id nor the URL of a file that this installation created',
      fix: `Send the URL of an artifact, such as ${artifactUrl(sources.baseUrl, '<id>')}, or its id alone. For another address, use url.`,
    },
  ]);
}

async function fromWeb({ fetcher }: FileSources, url: string, limits: FileLimits): Promise<InputFile> {
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

function fromData(data: string, { maxBytes }: FileLimits): InputFile {
  const { bytes, contentType } = dataBytes(data);
  refuseLarge(bytes, 'data', maxBytes);
  return { ...typesOf(contentType), bytes, url: undefined, fileName: undefined, local: true };
}

/** Whoever has the id may read the file, as by GET of the artifact. */
async function fromStore(
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
  return { ...typesOf(mediaType), bytes, url: artifactUrl(baseUrl, id), fileName, local: true };
}

function typesOf(contentType: string): Pick<InputFile, 'mediaType' | 'contentType'> {
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
