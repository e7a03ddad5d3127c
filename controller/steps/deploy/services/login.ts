// Who a backing service lets in: user, password and database, from its settings or made by the platform.
import { createHmac } from 'node:crypto';
import type { BackingService } from '../../../../crds/backing-services.ts';
import type { HostedApp } from '../../../../crds/hosted-app.ts';
import { dataKey } from '../data.ts';
import { literal } from './literal.ts';

/** Values as they stand in an environment: of texts literally, of a generated password by reference. */
export interface Login {
  readonly host: string;
  readonly user: string;
  /** Empty: none is asked for. */
  readonly password: string;
  readonly database: string;
  /** user:password@ of a URL; empty where no password is asked for. */
  readonly credentials: string;
  /** Value of a variable of the service, if its settings give one. */
  readonly given: (name: string) => string | undefined;
  /** The generated password, also where the settings give another. */
  readonly generated: string;
}

/** Which variables of the service say so, the first that is set; and what holds when none is. */
export interface LoginRules {
  readonly user?: { readonly names: readonly string[]; readonly usual: string };
  readonly password?: { readonly names: readonly string[]; readonly mayBeEmpty: boolean };
  readonly database?: { readonly names: readonly string[]; readonly usual?: string };
}

/** Variable that holds the generated password, in the service and in the app. */
export function passwordVariable(service: string): string {
  return `MOORAGE_${service.toUpperCase().replaceAll('-', '_')}_PASSWORD`;
}

/**
 * The password that is put into a new Secret. Made of the app's identity, so that a second try makes the same; once the
 * Secret is there it stays as it is, also when the platform's secret is another.
 */
export function generatedPassword(app: HostedApp, service: BackingService, secret: string): string {
  return createHmac('sha256', secret)
    .update(`moorage service password 1\n${app.metadata.name}\n${dataKey(app)}\n${service.name}\n${service.type}`)
    .digest('hex')
    .slice(0, 40);
}

/** The login of a service. */
export function loginOf(service: BackingService, rules: LoginRules): Login {
  const given = (name: string): string | undefined => service.env.find((each) => each.name === name)?.value;
  const said = (rule: { readonly names: readonly string[]; readonly usual?: string } | undefined): string | undefined =>
    rule?.names.map(given).find((value) => value !== undefined) ?? rule?.usual;
  const generated = `$(${passwordVariable(service.name)})`;
  const user = said(rules.user) ?? '';
  const { shown, inUrl } = passwordOf(said(rules.password), generated, rules.password);
  return {
    host: service.name,
    user: literal(user),
    password: shown,
    database: literal(said(rules.database) ?? user),
    credentials: shown === '' ? '' : `${literal(encodeURIComponent(user))}:${inUrl}@`,
    given,
    generated,
  };
}

/** The password as it is, and as it stands in a URL. */
function passwordOf(
  said: string | undefined,
  generated: string,
  rule: LoginRules['password'],
): { shown: string; inUrl: string } {
  if (rule === undefined) return { shown: '', inUrl: '' };
  const isGiven = said !== undefined && (said !== '' || rule.mayBeEmpty);
  return isGiven
    ? { shown: literal(said), inUrl: literal(encodeURIComponent(said)) }
    : { shown: generated, inUrl: generated };
}
