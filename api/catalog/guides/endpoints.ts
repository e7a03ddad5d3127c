// GET /api/agent-guides: what there are guides for. GET /api/agent-guides/{slug}: one of them.
import { z } from 'zod';
import { unknownName } from '../../../lib/similar-names.ts';
import { defineEndpoint, type Endpoint } from '../../http/index.ts';
import type { Guides } from './guides.ts';
import { unknownGuide } from './problems.ts';
import { guideEntry, guideRecord } from './record.ts';

/** Evidence is that of benchmarks. */
const freshSeconds = 15;

export const guidesPath = '/api/agent-guides';

export function guideEndpoints(guides: Pick<Guides, 'index' | 'guide' | 'slugs'>): Endpoint[] {
  return [
    defineEndpoint({
      method: 'GET',
      head: 'as GET',
      path: '/api/agent-guides',
      operation: 'listGuides',
      tag: 'catalog',
      summary: 'List the guides for agents',
      description:
        'Each guide answers one question, with the tool that applies, steps to execute and measured evidence.',
      output: z.array(guideEntry),
      outputDescription: 'The guides.',
      freshSeconds,
      handler: () => guides.index(),
    }),
    defineEndpoint({
      method: 'GET',
      head: 'as GET',
      path: '/api/agent-guides/{slug}',
      operation: 'getGuide',
      tag: 'catalog',
      summary: 'Read a guide for agents',
      description:
        'The answer says which of its claims the evidence supports, does not support or does not decide, and what has not been measured.',
      params: z.strictObject({
        // Any other slug is answered with 404 and the nearest ones.
        slug: z
          .string()
          .max(100)
          .meta({ enum: [...guides.slugs] })
          .describe('Identifier of the guide.'),
      }),
      output: guideRecord,
      outputDescription: 'The guide, licensed CC BY 4.0.',
      freshSeconds,
      problems: [unknownGuide],
      async handler({ params: { slug } }) {
        return (await guides.guide(slug)) ?? refuse(slug, guides.slugs);
      },
    }),
  ];
}

function refuse(slug: string, slugs: readonly string[]): never {
  throw unknownName(unknownGuide, {
    says: 'There is no guide',
    name: slug,
    names: slugs,
    all: `GET ${guidesPath} lists all guides.`,
  });
}
