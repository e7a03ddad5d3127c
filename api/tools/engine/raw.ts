// The response with the bytes of a tool's file, with headers that keep a browser from running strangers' content.
import { Problem } from '../../../lib/problem.ts';
import type { ArtifactStore } from './artifacts/artifact-store.ts';
import { unknownFile } from './artifacts/problems.ts';
import { noArtifact } from '../problems.ts';
import type { Artifact, Tool } from '../tool.ts';
import { createBufferedResponse } from '../../http/index.ts';

/** What a browser may display; anything else is downloaded. */
const shown = /^(image\/|audio\/|text\/plain|application\/pdf|application\/json)/;

/** @throws Problem (no-artifact) when the tool never creates a file */
export function refuseRaw({ name, artifacts }: Tool): void {
  if (artifacts !== undefined && artifacts.length > 0) return;
  throw new Problem(noArtifact, `The tool ${name} does not create a file. Remove raw to get the JSON response.`, {
    errors: [
      { in: 'query', field: 'raw', message: 'is not supported: this tool does not create a file', fix: 'Remove it.' },
    ],
  });
}

/**
 * What keeps a browser from running or guessing at a file of strangers. `X-Content-Type-Options: nosniff` comes with
 * every answer.
 */
function fileHeaders({ bytes, mediaType, fileName }: Artifact): Record<string, string> {
  const name = /^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$/.test(fileName) ? fileName : 'file';
  return {
    'content-type': mediaType,
    'content-length': String(bytes.length),
    'content-disposition': `${shown.test(mediaType) ? 'inline' : 'attachment'}; filename="${name}"`,
    // An SVG opened from here is a document of this origin: it may run nothing and fetch nothing.
    ...(mediaType === 'application/pdf'
      ? {}
      : {
          'content-security-policy':
            "default-src 'none'; style-src 'unsafe-inline'; img-src data:; font-src data:; sandbox",
        }),
  };
}

export function rawResponse(artifact: Artifact, headers: Readonly<Record<string, string>>): Response {
  return createBufferedResponse(artifact.bytes as Uint8Array<ArrayBuffer>, {
    headers: { ...headers, ...fileHeaders(artifact) },
  });
}

/** The file of an answer from before, by the id that is stored of it. @throws Problem (unknown-file) */
export async function readStoredFile(artifacts: Pick<ArtifactStore, 'get'>, id: string | undefined): Promise<Artifact> {
  const artifact = id === undefined ? undefined : await artifacts.get(id);
  if (artifact !== undefined) return artifact;
  throw new Problem(
    unknownFile,
    `This call was answered before, but its file ${id === undefined ? 'was too large to store' : 'has expired'}. Send the call with a new Idempotency-Key to create the file again; that call is charged.`,
  );
}
