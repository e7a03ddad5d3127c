// GET /t/artifacts/{id}: a file that a tool has made, without running it again. Its address is the permission to read
// it.
import { z } from 'zod';
import { Problem } from '../../../../lib/problem.ts';
import { defineEndpoint, type Endpoint } from '../../../http/endpoint.ts';
import { ledgerUnavailable, ledgerUnconfigured } from '../../../billing/problems.ts';
import { rawResponse } from '../raw.ts';
import type { ArtifactStore } from './artifact-store.ts';
import { unknownFile } from './problems.ts';

const path = '/t/artifacts';

export function artifactUrl(baseUrl: string, id: string): string {
  return `${baseUrl}${path}/${id}`;
}

export function artifactEndpoint(artifacts: Pick<ArtifactStore, 'get'>): Endpoint {
  return defineEndpoint({
    method: 'GET',
    path: `${path}/{id}`,
    operation: 'getArtifact',
    tag: 'tools',
    summary: 'A file that a tool has made',
    description:
      'The addresses that answers of tools give for their files lead here. They are kept for an hour, those of jobs for a day, and cost nothing. Whoever has the address gets the file: no key is asked for.',
    params: z.strictObject({ id: z.string().max(100).describe('As it stands in the address') }),
    output: z.never(),
    outputDescription: 'The bytes of the file.',
    produces: ['*/*'],
    problems: [unknownFile, ledgerUnavailable, ledgerUnconfigured],
    async handler({ params: { id } }) {
      const file = await artifacts.get(id);
      if (file === undefined)
        throw new Problem(
          unknownFile,
          'no file is kept at this address, or no longer; call the tool again to have it made anew',
        );
      return rawResponse(file, { 'cache-control': 'no-store', 'referrer-policy': 'no-referrer' });
    },
  });
}
