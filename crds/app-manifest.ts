// Defines moorage.yaml, the manifest in an app's repository: the fields of HostedApp that its author can set, within limits.
import { z } from 'zod';
import { parseDuration } from '../lib/values.ts';
import { services as servicesField } from './backing-services.ts';
import { authorComponents, hasProcessFields, isRunning, onlyInComponents } from './components.ts';
import { previews } from './previews.ts';
import { agents, author, build, listing, run, source, metering } from './hosted-app.ts';
import { explainSchedule, findSharedName, tasks } from './tasks.ts';
import { declaredMcp, quantity, parseQuantityValue } from './values.ts';

/** The file is at the top level of the repository, whatever source.path is. */
export const manifestFile = 'moorage.yaml';

/** Limits of what an author can set; beyond them, the operator of the installation edits the HostedApp. */
export const authorLimits = {
  build: { cpu: '4', memory: '8Gi', disk: '20Gi', timeout: '1h' },
  run: { cpu: '2', memory: '2Gi', disk: '5Gi', startupTime: '10m', idleAfter: '24h' },
  volumes: { count: 2, size: '5Gi' },
  services: { count: 4, memory: '1Gi', disk: '5Gi' },
  /** Of all components of an app together. */
  components: { cpu: '4', memory: '4Gi', disk: '10Gi' },
} as const;

/** Maximum size of the settings as JSON, which is how the pipeline reports them to the operator. */
export const maximumManifestBytes = 12_000;

/** A duration of the spec with a maximum for authors. */
function limitDuration(field: z.ZodDefault<z.ZodString>, subject: string, maximum: string): z.ZodString {
  return field.unwrap().refine((text) => parseDuration(text) <= parseDuration(maximum), {
    error: `${subject} can be at most ${maximum} here`,
  });
}

/** An author may let the app rest sooner, but cannot keep the installation from putting it to rest. */
const idleAfter = run.shape.idleAfter
  .unwrap()
  .refine((text) => text !== 'never', { error: 'idleAfter cannot be never here; only the HostedApp can say so' })
  .refine((text) => text === 'auto' || text === 'never' || isShort(text), {
    error: `idleAfter can be at most ${authorLimits.run.idleAfter} here`,
  });

/** True for a text that is not a duration: another rule rejects it. */
function isShort(text: string): boolean {
  try {
    return parseDuration(text) <= parseDuration(authorLimits.run.idleAfter);
  } catch {
    return true;
  }
}

const volumes = run.shape.volumes
  .unwrap()
  .refine((list) => list.length <= authorLimits.volumes.count, {
    error: `at most ${authorLimits.volumes.count} volumes are allowed here`,
  })
  .refine(
    (list) =>
      list.every(
        ({ size }) => (parseQuantityValue(size) ?? Infinity) <= (parseQuantityValue(authorLimits.volumes.size) ?? 0),
      ),
    { error: `a volume can have at most ${authorLimits.volumes.size} here` },
  )
  .refine((list) => new Set(list.map(({ path }) => path)).size === list.length, {
    error: 'two volumes have the same path; give each its own',
  });

const isBrief = (text: string | undefined): boolean =>
  text === undefined || parseDuration(text) <= parseDuration(authorLimits.run.startupTime);

const isWithin = (value: string | undefined, maximum: string): boolean =>
  value === undefined || (parseQuantityValue(value) ?? Infinity) <= (parseQuantityValue(maximum) ?? 0);

const services = servicesField
  .refine((list) => list.length <= authorLimits.services.count, {
    error: `at most ${authorLimits.services.count} services are allowed here`,
  })
  .refine((list) => list.every(({ disk }) => isWithin(disk, authorLimits.services.disk)), {
    error: `a service can have at most ${authorLimits.services.disk} of disk here`,
  })
  .refine((list) => list.every(({ memory }) => isWithin(memory, authorLimits.services.memory)), {
    error: `a service can have at most ${authorLimits.services.memory} of memory here`,
  });

/**
 * One line for display: no control characters, no line breaks of any kind, nothing that changes the text direction. No
 * classes like \p{Cc}: the pattern is published in the OpenAPI document, and other languages do not know them.
 */
export const oneLine = new RegExp(
  String.raw`^[^\u0000-\u001f\u007f-\u009f\u2028\u2029\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff]*$`,
);
const contactForm = /^([^\s@]+@[^\s@]+\.[^\s@]+|https?:\/\/\S+)$/;

// Check the length first and stop there: matching the form takes time that grows with the square of the length.
export const contact = z
  .string()
  .max(200, { abort: true })
  .regex(oneLine, 'must not contain control characters')
  .regex(contactForm, 'must be an e-mail address or a URL');

const manifestFields = z.strictObject({
  source: z.strictObject({ path: source.shape.path.unwrap().optional() }).optional(),
  build: z
    .strictObject({
      strategy: build.shape.strategy.unwrap().optional(),
      dockerfile: build.shape.dockerfile.unwrap().optional(),
      target: build.shape.target,
      args: build.shape.args.unwrap().optional(),
      env: build.shape.env.unwrap().optional(),
      timeout: limitDuration(build.shape.timeout, 'timeout', authorLimits.build.timeout).optional(),
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
      startupTime: limitDuration(run.shape.startupTime, 'startupTime', authorLimits.run.startupTime).optional(),
      volumes: volumes.optional(),
      idleAfter: idleAfter.optional(),
      idle: run.shape.idle.unwrap().optional(),
      resources: z
        .strictObject({
          cpu: quantity('cpu', '10m', authorLimits.run.cpu).optional(),
          memory: quantity('memory', '16Mi', authorLimits.run.memory).optional(),
          disk: quantity('disk', '16Mi', authorLimits.run.disk).optional(),
        })
        .optional(),
    })
    .optional(),
  components: authorComponents
    .refine((list) => list.every(({ startupTime }) => isBrief(startupTime)), {
      error: `startupTime can be at most ${authorLimits.run.startupTime} here`,
    })
    .refine(
      (list) =>
        new Set(list.flatMap(({ volumes: own = [] }) => own.map(({ name }) => name))).size <=
        authorLimits.volumes.count,
      {
        error: `at most ${authorLimits.volumes.count} volumes are allowed here`,
      },
    )
    .refine(
      (list) =>
        list.every(({ volumes: own = [] }) => own.every(({ size }) => isWithin(size, authorLimits.volumes.size))),
      {
        error: `a volume can have at most ${authorLimits.volumes.size} here`,
      },
    )
    .optional(),
  tasks: tasks.optional(),
  services: services.optional(),
  agents: z
    .strictObject({
      enabled: agents.shape.enabled.unwrap().optional(),
      openapi: agents.shape.openapi.unwrap().optional(),
      mcp: agents.shape.mcp.unwrap().optional(),
    })
    .optional(),
  mcp: declaredMcp.optional(),
  metering: z.strictObject({ free: metering.shape.free.unwrap().optional() }).optional(),
  previews: z
    .strictObject({
      pullRequests: previews.shape.pullRequests.unwrap().optional(),
      branches: previews.shape.branches.unwrap().optional(),
      limit: previews.shape.limit.unwrap().optional(),
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
  author: z.strictObject({ contact: contact.optional().describe(author.shape.contact.description ?? '') }).optional(),
});

type ManifestFields = z.output<typeof manifestFields>;
type Report = (path: readonly (string | number)[], message: string) => void;

export const appManifest = manifestFields.superRefine((manifest, context) => {
  const report: Report = (path, message) => {
    context.addIssue({ code: 'custom', path: [...path], message });
  };
  checkTasks(manifest, report);
  if ((manifest.components ?? []).length > 0) checkComponents(manifest, report);
});

function checkTasks({ tasks: list = [], components: processes = [] }: ManifestFields, report: Report): void {
  for (const [index, task] of list.entries()) {
    const message = explainSchedule(task);
    if (message !== undefined) report(['tasks', index, 'schedule'], message);
  }
  const shared = findSharedName(list, processes);
  if (shared !== undefined) report(['tasks'], `a task and a component are both named ${shared}; rename one of them`);
}

function checkComponents(manifest: ManifestFields, report: Report): void {
  if (hasProcessFields(manifest)) report(['components'], onlyInComponents);
  const services = new Set(manifest.services?.map(({ name }) => name));
  const twice = manifest.components?.find(({ name }) => services.has(name));
  if (twice !== undefined)
    report(
      ['components'],
      `a component and a service are both named ${twice.name}, and each is reached at its name; rename one of them`,
    );
  for (const resource of ['cpu', 'memory', 'disk'] as const) {
    const limit = authorLimits.components[resource];
    if (sumResources(manifest, resource) > (parseQuantityValue(limit) ?? 0))
      report(
        ['components'],
        `all components together can have at most ${limit} of ${resource} here; lower resources.${resource} of some, or run.resources.${resource} for all that set none`,
      );
  }
}

export type AppManifest = z.infer<typeof appManifest>;

/** What the running components of a manifest take together, in cores or bytes. */
function sumResources(
  { components = [], run: own = {} }: z.infer<typeof manifestFields>,
  resource: 'cpu' | 'memory' | 'disk',
): number {
  const usual = own.resources?.[resource] ?? run.shape.resources.parse({})[resource];
  return components
    .filter(isRunning)
    .reduce((sum, { resources }) => sum + (parseQuantityValue(resources?.[resource] ?? usual) ?? Infinity), 0);
}

/** What the pipeline reports: the settings of moorage.yaml, over those that files for other platforms gave. */
export const reportedSettings = manifestFields.extend({
  platform: z
    .strictObject({
      file: z.string().max(200).describe('The file, such as compose.yaml.'),
      fields: z.array(z.string().max(60)).max(32).describe('Fields that it set, such as run.port.'),
    })
    .optional(),
});
export type ReportedSettings = z.infer<typeof reportedSettings>;
