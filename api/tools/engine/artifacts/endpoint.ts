// GET /t/artifacts/{id}: a file that a tool created, without running it again. Its URL is the permission to read it.
import { z } from 'zod';
import { Problem } from '../../../../lib/problem.ts';
import { defineEndpoint, type Endpoint } from '../../../http/index.ts';
import { ledgerUnavailable, ledgerUnconfigured } from '../../../billing/index.ts';
import { costHeaderFields, costHeaders, noCost } from '../cost.ts';
import { rawResponse } from '../raw.ts';
import { type ArtifactStore, isArtifactId } from './artifact-store.ts';
import { unknownFile } from './problems.ts';

const path = '/t/artifacts';

export function artifactUrl(baseUrl: string, id: string): string {
  return `${baseUrl}${path}/${id}`;
}

/**
 * The id in the URL of a file of this installation; in the field `artifact` also the id alone, or the path. Undefined
 * for anything else.
 */
export function artifactIdOf(baseUrl: string, text: string, field: 'url' | 'artifact'): string | undefined {
  if (field === 'artifact' && isArtifactId(text)) return text;
  const beside = field === 'artifact' ? baseUrl : undefined;
  if (!URL.canParse(text, beside)) return undefined;
  const [given, own] = [new URL(text, beside), new URL(artifactUrl(baseUrl, ''))];
  const id = given.pathname.startsWith(own.pathname) ? given.pathname.slice(own.pathname.length) : '';
  return given.origin === own.origin && isArtifactId(id) ? id : undefined;
}

export function artifactEndpoint(artifacts: Pick<ArtifactStore, 'get'>): Endpoint {
  return defineEndpoint({
    method: 'GET',
    head: 'as GET',
    path: `${path}/{id}`,
    operation: 'getArtifact',
    tag: 'tools',
    summary: 'Download a file that a tool created',
    description:
      'Tool responses link to their files here. A file is stored for one hour, the file of a job for 24 hours; when one caller creates many files, the oldest are removed earlier. Downloads are free. Anyone who has the URL can download the file; no key is required.',
    params: z.strictObject({ id: z.string().max(100).describe('Id of the file, from the URL in the tool response.') }),
    output: z.never(),
    outputDescription: 'The bytes of the file.',
    produces: ['*/*'],
    problems: [unknownFile, ledgerUnavailable, ledgerUnconfigured],
    problemHeaders: costHeaderFields,
    async handler({ params: { id } }) {
      const file = await artifacts.get(id);
      if (file === undefined)
        throw new Problem(
          unknownFile,
          'No file with this id is stored; it may have expired. Call the tool again to create it again.',
        );
      return rawResponse(file, {
        'cache-control': 'no-store',
        'referrer-policy': 'no-referrer',
        ...costHeaders(noCost),
      });
    },
  });
}
