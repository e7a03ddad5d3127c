// Chart values of the databases and stores that run beside apps.
import { z } from 'zod';
import { quantity } from './value-kinds.ts';

export const services = z.strictObject({
  count: z.int().min(0).max(8).default(4).describe('Maximum number of backing services of an app. 0: none.'),
  maximum: z
    .strictObject({
      memory: quantity.default('1Gi'),
      disk: quantity.default('5Gi'),
    })
    .prefault({})
    .describe('Limits of each service, whatever its app asks for.'),
  images: z
    .record(z.string().regex(/^[a-z]{1,20}(-[0-9A-Za-z._-]{1,40})?$/), z.string().regex(/^[^=,\s]{0,300}$/))
    .default({
      postgres: 'docker.io/pgvector/pgvector:pg17',
      redis: 'docker.io/library/redis:8',
      mongo: 'docker.io/library/mongo:8',
      mysql: 'docker.io/library/mysql:8.4',
      qdrant: 'docker.io/qdrant/qdrant:v1.15.4-unprivileged',
      chroma: 'docker.io/chromadb/chroma:1.0.20',
      minio: 'docker.io/minio/minio:RELEASE.2025-09-07T16-13-09Z',
      meilisearch: 'docker.io/getmeili/meilisearch:v1.22.1',
    })
    .describe(
      'Image of each type of service; of a further version as <type>-<version>, like postgres-16. A type that is empty is not offered, and apps that need it are rejected.',
    ),
});
