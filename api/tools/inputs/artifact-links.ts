// Links to files of this installation, wherever a caller writes a URL or HTML: read from where artifacts are stored. The
// guard refuses the address of a local installation, and a browser that prints a page may not reach it either.
import { Problem } from '../../../lib/problem.ts';
import { artifactIdOf, artifactUrl } from '../engine/artifacts/endpoint.ts';
import { unknownFile } from '../engine/artifacts/problems.ts';
import { fetchTooLarge } from '../fetch/problems.ts';
import type { Fetcher, FetchRequest, FetchResult } from '../fetch/fetcher.ts';
import { toolLimit } from '../problems.ts';
import type { Artifact } from '../tool.ts';
import type { FileSources } from './file-reader.ts';

type Sources = Pick<FileSources, 'artifacts' | 'baseUrl'>;

/** Bytes of all files that one page embeds. */
const maxEmbeddedBytes = 20_000_000;

/** A fetcher that answers for artifacts of this installation itself. Nothing else of it can be reached that way. */
export function withArtifacts(fetcher: Fetcher, sources: Sources): Fetcher {
  const answer = async (request: FetchRequest): Promise<FetchResult | undefined> => {
    const id = artifactIdOf(sources.baseUrl, request.url, 'url');
    if (id === undefined) return undefined;
    const { bytes, mediaType } = await readArtifact(sources, id, request.field ?? 'url');
    if (bytes.length > request.maxBytes)
      throw new Problem(fetchTooLarge, `The file has ${bytes.length} bytes; the limit is ${request.maxBytes} bytes.`, {
        members: { limit_bytes: request.maxBytes },
      });
    const type = mediaType.split(';', 1)[0]?.trim().toLowerCase() ?? '';
    const headers = new Headers({ 'content-type': mediaType });
    return { url: artifactUrl(sources.baseUrl, id), status: 200, headers, mediaType: type, bytes };
  };
  return {
    fetch: async (request) => (await answer(request)) ?? fetcher.fetch(request),
    get: async (request) => (await answer(request)) ?? fetcher.get(request),
    check: (request) => fetcher.check(request),
  };
}

/** Where HTML and CSS load something from; an address in text or in a link stays as it is. */
const loads =
  /(<(?:img|input|source|audio|video|embed)\b[^>]*?\ssrc\s*=\s*["']?|<video\b[^>]*?\sposter\s*=\s*["']?|<image\b[^>]*?\shref\s*=\s*["']?|\burl\(\s*["']?)(https?:\/\/[^"'\s)>]+)/gi;

/**
 * The page with the artifacts that it shows in it. `field`: where the page was sent. @throws Problem (unknown-file) for one
 * that is not stored, since the page would show a gap in its place
 */
export async function embedArtifacts(html: string, sources: Sources, field: string): Promise<string> {
  const ids = new Set(
    [...html.matchAll(loads)].flatMap(([, , url = '']) => artifactIdOf(sources.baseUrl, url, 'url') ?? []),
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
    const data = embedded.get(artifactIdOf(sources.baseUrl, url, 'url') ?? '');
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
        message: `names ${artifactUrl(baseUrl, id)}, which is not stored here; it may have expired`,
        fix: 'Call the tool that created it again, and use the URL of the new artifact.',
      },
    ],
  });
}
