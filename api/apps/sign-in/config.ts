// The sign-in providers of an installation: forges, whose accounts own an app if the forge says that they can push to it.
import { z } from 'zod';
import { readConfig } from '../../../lib/config.ts';

export const forgeKinds = ['github', 'gitlab', 'gitea'] as const;
export type ForgeKind = (typeof forgeKinds)[number];

/** A provider, with everything that its kind implies filled in. */
export interface SignInProvider {
  /** Part of the redirect URI. */
  readonly id: string;
  /** As the sign-in page names it. */
  readonly label: string;
  readonly forge: ForgeKind;
  readonly issuer: URL;
  readonly clientId: string;
  readonly clientSecret: string;
  /** Separated by spaces; may be empty. */
  readonly scopes: string;
  /** Base of the forge's API, without a slash at the end. */
  readonly apiUrl: string;
  /** The git host whose repositories the accounts of the provider can own. */
  readonly host: string;
}

/** Certificates protect the secrets that are sent. On this machine alone, there is nothing between. */
function isProtected(text: string): boolean {
  const { protocol, hostname } = new URL(text);
  return protocol === 'https:' || (protocol === 'http:' && /^(?:127\.\d+\.\d+\.\d+|\[::1\]|localhost)$/.test(hostname));
}

const address = z
  .url()
  .max(300)
  .refine((text) => URL.canParse(text) && isProtected(text), 'must be an https address');

const provider = z.strictObject({
  id: z.string().regex(/^[a-z0-9](?:[a-z0-9-]{0,30}[a-z0-9])?$/, 'must be like github or our-gitlab'),
  label: z.string().min(1).max(40),
  forge: z.enum(forgeKinds),
  issuer: address,
  clientId: z.string().min(1).max(300),
  clientSecret: z.string().min(1).max(500),
  scopes: z.string().max(300).optional(),
  apiUrl: address.optional(),
  host: z
    .string()
    .regex(/^[a-z0-9][a-z0-9.-]*(?::\d{1,5})?$/, 'must be a git host in lower case')
    .optional(),
});

/** What a forge's API needs to read permissions. Public repositories of GitHub need no scope. */
const defaultScopes: Readonly<Record<ForgeKind, string>> = {
  github: '',
  gitlab: 'openid read_api',
  gitea: 'openid read:user read:repository',
};

function toProvider({ issuer, scopes, apiUrl, host, ...given }: z.output<typeof provider>): SignInProvider {
  const url = new URL(issuer);
  const base = (apiUrl ?? deriveApiUrl(given.forge, url)).replace(/\/+$/, '');
  return { ...given, issuer: url, scopes: scopes ?? defaultScopes[given.forge], apiUrl: base, host: host ?? url.host };
}

function deriveApiUrl(forge: ForgeKind, { origin, host }: URL): string {
  if (forge === 'gitlab') return `${origin}/api/v4`;
  if (forge === 'gitea') return `${origin}/api/v1`;
  return host === 'github.com' ? 'https://api.github.com' : `${origin}/api/v3`;
}

const hidden = 'hidden';

/** The text has secrets, so no message quotes it: each names the field. */
const providers = z.string().transform((text, context): readonly SignInProvider[] => {
  const refuse = (message: string): never => {
    context.addIssue({ code: 'custom', message, input: hidden });
    return z.NEVER;
  };
  const parsed = z.array(provider).min(1).max(20).safeParse(parseJson(text));
  if (!parsed.success) {
    const fields = parsed.error.issues.map(({ path, message }) => `${path.join('.') || 'the list'}: ${message}`);
    return refuse(`must be a JSON list of providers (${fields.join('; ')})`);
  }
  const all = parsed.data.map(toProvider);
  const twice = all.find(({ id }, index) => all.findIndex((each) => each.id === id) !== index);
  return twice === undefined ? all : refuse(`must have each id once: ${twice.id}`);
});

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** Every variable of sign-in. */
export const environment = z.object({
  MOORAGE_SIGN_IN_PROVIDERS: providers
    .optional()
    .describe(
      'JSON list of the forges with whose accounts authors sign in: objects with `id`, `label`, `forge` (github, gitlab or gitea), `issuer`, `clientId`, `clientSecret`, and optionally `scopes`, `apiUrl` and `host`. Without it, authors use keys alone.',
    ),
});

/** @throws Error that names the wrong field, and quotes no value */
export function readSignInProviders(variables: NodeJS.ProcessEnv = process.env): readonly SignInProvider[] {
  return readConfig(environment, variables).MOORAGE_SIGN_IN_PROVIDERS ?? [];
}
