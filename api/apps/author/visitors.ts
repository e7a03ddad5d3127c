// The endpoints with which an author decides who may visit an app: everybody, holders of a key, or those who know a password.
// Keys and the password are stored as hashes in spec.control; the activator enforces them.
import { readSlug } from '../../../crds/slugs.ts';
import { z } from 'zod';
import {
  accessKeyName,
  createAccessKey,
  hashAccessKey,
  hashAccessPassword,
  isAccessKey,
  longestPassword,
  maximumAccessKeys,
} from '../../../crds/access.ts';
import type { Control } from '../../../crds/control.ts';
import { createUnknownNameProblem, Problem } from '../../../lib/problem.ts';
import { defineEndpoint, type Endpoint } from '../../http/index.ts';
import type { App } from '../hosted-apps.ts';
import { readingProblems, settingRefused, unknownAccessKey } from '../problems.ts';
import type { ControlChange } from './control.ts';
import { type AuthorServices, changeProblems, slugParams } from './endpoints.ts';

const shortestPassword = 10;
/** A password of fewer is a repetition that anybody tries first. */
const fewestCharacters = 5;

/** Accepts the names of modes, and refuses `oidc` by name. */
const accessMode = z.enum(['public', 'key', 'password'], {
  error: ({ input }) =>
    input === 'oidc'
      ? 'must be public, key or password: this version does not ask an OpenID provider who a visitor is; send password, or key for programs'
      : undefined,
});

const accessBody = z
  .strictObject({
    access: accessMode.describe(
      'public: anyone may visit the app. key: only with an access key. password: with the password or an access key.',
    ),
    password: z
      .string()
      .max(longestPassword)
      .refine((text) => text.length >= shortestPassword && new Set(text).size >= fewestCharacters, {
        error: `must have at least ${shortestPassword} characters, of which ${fewestCharacters} differ`,
      })
      .refine((text) => text.isWellFormed() && !/\p{Cc}/u.test(text), {
        error: 'must be text without control characters',
      })
      .refine((text) => !isAccessKey(text), { error: 'has the form of an access key; choose another one' })
      .optional()
      .describe('The password, with access: password. It replaces the one before, and is never shown again.'),
  })
  .refine(({ access, password }) => access === 'password' || password === undefined, {
    path: ['password'],
    error: 'is only for access: password; leave it out',
  });

export const accessView = z.object({
  slug: z.string(),
  access: z
    .enum(['public', 'key', 'password'])
    .describe('public: anyone. key: holders of an access key. password: those with the password or an access key.'),
  enforced: z
    .boolean()
    .describe('Whether requests are checked already. False for a few seconds after a change, and while nothing runs.'),
  keys: z
    .array(z.object({ name: z.string(), created_at: z.string().describe('RFC 3339.') }))
    .describe('The access keys, without the keys themselves.'),
});

export const createdKeyView = z.object({
  slug: z.string(),
  name: z.string(),
  key: z.string().describe('Keep it secret: it is shown once. Visitors send it as Authorization: Bearer.'),
  message: z.string(),
});

const keyParams = slugParams.extend({ name: accessKeyName.describe('Name of the key.') });

export function createVisitorEndpoints(services: AuthorServices): Endpoint[] {
  return [
    createReadEndpoint(services),
    createSetEndpoint(services),
    createKeyEndpoint(services),
    createRevokeEndpoint(services),
  ];
}

function createReadEndpoint({ access }: AuthorServices): Endpoint {
  return defineEndpoint({
    method: 'GET',
    path: '/api/apps/{slug}/access',
    operation: 'getAccess',
    tag: 'apps',
    summary: 'Get who may visit an app',
    description: 'The mode and the names of the access keys.',
    params: slugParams,
    output: accessView,
    outputDescription: 'Who may visit the app.',
    returnsCallerData: true,
    problems: readingProblems,
    head: 'as GET',
    handler: async ({ params }, context) =>
      toAccessView((await access.identify(params.slug, context, 'getAccess')).app),
  });
}

function createSetEndpoint(services: AuthorServices): Endpoint {
  return defineEndpoint({
    method: 'PUT',
    path: '/api/apps/{slug}/access',
    operation: 'setAccess',
    tag: 'apps',
    summary: 'Set who may visit an app',
    description:
      'Protects every address of the app, or opens it again. A new password ends all sessions that the one before began. With public, the password and all access keys are deleted.',
    params: slugParams,
    body: accessBody,
    output: accessView.extend({ message: z.string() }),
    outputDescription: 'Who may visit the app. It is enforced within seconds.',
    problems: [...changeProblems, settingRefused],
    handler: async ({ params: { slug }, body }, context) => {
      const { access, password } = body;
      const detail = { access, ...(password === undefined ? {} : { password: 'changed' }) };
      const changed = await services.access.act(
        slug,
        context,
        { operation: 'setAccess', action: 'set-access', detail },
        async ({ app }) => {
          const hash = password === undefined ? undefined : await hashAccessPassword(password);
          return services.writeControl(app, (control) => applyAccess(control, access, hash));
        },
      );
      return { ...toAccessView(changed), message: describeAccess(changed) };
    },
  });
}

function createKeyEndpoint(services: AuthorServices): Endpoint {
  return defineEndpoint({
    method: 'POST',
    path: '/api/apps/{slug}/access/keys',
    operation: 'createAccessKey',
    tag: 'apps',
    summary: 'Create a key for visitors of an app',
    description: `The key opens a protected app until it is revoked. An app has at most ${maximumAccessKeys} keys.`,
    params: slugParams,
    body: z.strictObject({ name: accessKeyName.min(1).describe('Name with which you revoke it, such as team or ci.') }),
    output: createdKeyView,
    outputDescription: 'The key.',
    returnsCallerData: true,
    problems: [...changeProblems, settingRefused],
    handler: async ({ params: { slug }, body: { name } }, context) => {
      const key = createAccessKey();
      const createdAt = (services.now?.() ?? new Date()).toISOString();
      await services.access.act(
        slug,
        context,
        { operation: 'createAccessKey', action: 'create-access-key', detail: { name } },
        ({ app }) =>
          services.writeControl(app, (control) => addKey(control, { name, hash: hashAccessKey(key), createdAt })),
      );
      const message = `Send it as Authorization: Bearer, or as Moorage-Access if the app itself uses Authorization. It is not shown again.`;
      return { slug, name, key, message };
    },
  });
}

function createRevokeEndpoint(services: AuthorServices): Endpoint {
  return defineEndpoint({
    method: 'DELETE',
    path: '/api/apps/{slug}/access/keys/{name}',
    operation: 'revokeAccessKey',
    tag: 'apps',
    summary: 'Revoke a key for visitors of an app',
    description: 'The key and the sessions and streams that it has opened end within seconds.',
    params: keyParams,
    output: z.object({ name: z.string(), message: z.string() }),
    outputDescription: 'The key was revoked.',
    problems: [...changeProblems, unknownAccessKey],
    handler: async ({ params: { slug, name } }, context) => {
      await services.access.act(
        slug,
        context,
        { operation: 'revokeAccessKey', action: 'revoke-access-key', detail: { name } },
        ({ app }) => services.writeControl(app, (control) => removeKey(control, name)),
      );
      return { name, message: `${name} is revoked. What it opened ends within seconds.` };
    },
  });
}

function toAccessView(app: App): z.input<typeof accessView> {
  const { metadata, spec, status } = app;
  const { access = 'public', accessKeys = [] } = spec.control ?? {};
  const routed = status?.conditions?.find(({ type }) => type === 'Routed');
  return {
    slug: readSlug(app),
    access,
    enforced:
      access !== 'public' &&
      routed?.status === 'True' &&
      (routed.observedGeneration ?? 0) >= (metadata.generation ?? 0),
    keys: accessKeys.map(({ name, createdAt }) => ({ name, created_at: createdAt })),
  };
}

function describeAccess(app: App): string {
  const name = readSlug(app);
  const { control = {} } = app.spec;
  switch (control.access) {
    case undefined:
      return `Anyone may visit ${name}.`;
    case 'password':
      return `Visitors of ${name} need the password or an access key. It is enforced within seconds.`;
    case 'key':
      return (control.accessKeys ?? []).length === 0
        ? `Nobody can visit ${name} yet: create an access key with POST /api/apps/${name}/access/keys.`
        : `Visitors of ${name} need an access key. It is enforced within seconds.`;
  }
}

/** @throws Problem (setting-refused) */
function applyAccess(
  control: Control,
  access: z.output<typeof accessMode>,
  accessPassword: string | undefined,
): ControlChange {
  if (access === 'public') return { access: undefined, accessPassword: undefined, accessKeys: undefined };
  if (access === 'key') return { access, accessPassword: undefined };
  if (accessPassword === undefined && control.accessPassword === undefined)
    throw new Problem(
      settingRefused,
      'password is required with access: password. Send the password that visitors enter.',
    );
  return { access, ...(accessPassword === undefined ? {} : { accessPassword }) };
}

/** @throws Problem (setting-refused) */
function addKey(control: Control, key: NonNullable<Control['accessKeys']>[number]): ControlChange {
  const { access, accessKeys = [] } = control;
  if (access === undefined)
    throw new Problem(
      settingRefused,
      'The app is public, so a key opens nothing. Set access to key or password first: PUT /api/apps/{slug}/access.',
    );
  if (accessKeys.some(({ name }) => name === key.name))
    throw new Problem(
      settingRefused,
      `name is taken: there is a key ${key.name}. Revoke it first, or choose another name.`,
    );
  if (accessKeys.length >= maximumAccessKeys)
    throw new Problem(settingRefused, `An app has at most ${maximumAccessKeys} access keys. Revoke one first.`);
  return { accessKeys: [...accessKeys, key] };
}

/** @throws Problem (unknown-access-key) */
function removeKey({ accessKeys = [] }: Control, name: string): ControlChange {
  if (!accessKeys.some((key) => key.name === name))
    throw createUnknownNameProblem(unknownAccessKey, {
      says: 'Unknown access key',
      name,
      names: accessKeys.map((key) => key.name),
      all: 'GET /api/apps/{slug}/access lists them.',
    });
  return { accessKeys: accessKeys.filter((key) => key.name !== name) };
}
