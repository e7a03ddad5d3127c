// What an author may set for his own app, in the file moorage.yaml of his repository: the fields of HostedApp, within
// limits.
import { z } from 'zod';
import { parseDuration } from '../lib/duration.ts';
import { agents, build, listing, run, source } from './hosted-app.ts';
import { quantity, quantityValue } from './values.ts';

/** Where the file stands: at the top of the repository, whatever source.path is. */
export const settingsFile = 'moorage.yaml';

/** The most that an author can give himself; beyond it, whoever runs the installation sets the HostedApp. */
export const authorLimits = {
  build: { cpu: '4', memory: '8Gi', disk: '20Gi', timeout: '1h' },
  run: { cpu: '2', memory: '2Gi', disk: '5Gi', startupTime: '10m' },
  volumes: { count: 2, size: '5Gi' },
} as const;

/** What the settings take as JSON, which is how the pipeline tells them to the operator. */
export const mostSettingsBytes = 2_000;

/** A duration of the spec that an author may raise only so far. */
function atMost(field: z.ZodDefault<z.ZodString>, what: string, most: string): z.ZodString {
  return field
    .unwrap()
    .refine((text) => parseDuration(text) <= parseDuration(most), { error: `${what} can be at most ${most} here` });
}

const volumes = run.shape.volumes
  .unwrap()
  .refine((list) => list.length <= authorLimits.volumes.count, {
    error: `at most ${authorLimits.volumes.count} volumes can be asked for here`,
  })
  .refine(
    (list) =>
      list.every(({ size }) => (quantityValue(size) ?? Infinity) <= (quantityValue(authorLimits.volumes.size) ?? 0)),
    { error: `a volume has at most ${authorLimits.volumes.size} here` },
  )
  .refine((list) => new Set(list.map(({ path }) => path)).size === list.length, {
    error: 'two volumes have the same path; give each its own',
  });

export const authorSettings = z.strictObject({
  source: z.strictObject({ path: source.shape.path.unwrap().optional() }).optional(),
  build: z
    .strictObject({
      strategy: build.shape.strategy.unwrap().optional(),
      dockerfile: build.shape.dockerfile.unwrap().optional(),
      args: build.shape.args.unwrap().optional(),
      env: build.shape.env.unwrap().optional(),
      timeout: atMost(build.shape.timeout, 'timeout', authorLimits.build.timeout).optional(),
      resources: z
        .strictObject({
          cpu: quantity('cpu', '100m', authorLimits.build.cpu).optional(),
          memory: quantity('memory', '128Mi', authorLimits.build.memory).optional(),
          disk: quantity('disk', '256Mi', authorLimits.build.disk).optional(),
        })
        .optional(),
    })
    .optional(),
  run: z
    .strictObject({
      port: run.shape.port,
      command: run.shape.command.unwrap().optional(),
      env: run.shape.env.unwrap().optional(),
      healthPath: run.shape.healthPath,
      startupTime: atMost(run.shape.startupTime, 'startupTime', authorLimits.run.startupTime).optional(),
      volumes: volumes.optional(),
      resources: z
        .strictObject({
          cpu: quantity('cpu', '10m', authorLimits.run.cpu).optional(),
          memory: quantity('memory', '16Mi', authorLimits.run.memory).optional(),
          disk: quantity('disk', '16Mi', authorLimits.run.disk).optional(),
        })
        .optional(),
    })
    .optional(),
  agents: z
    .strictObject({
      enabled: agents.shape.enabled.unwrap().optional(),
      openapi: agents.shape.openapi.unwrap().optional(),
      mcp: agents.shape.mcp.unwrap().optional(),
    })
    .optional(),
  listing: z
    .strictObject({
      title: listing.shape.title,
      description: listing.shape.description,
      category: listing.shape.category.unwrap().optional(),
      upstream: listing.shape.upstream,
    })
    .optional(),
});
export type AuthorSettings = z.infer<typeof authorSettings>;
