// How a hosted app is reached: by its own host name, or through a gateway that knows it by that name.
import { Agent } from 'undici';

/** Where an app answers. */
export interface AppAddress {
  /** Like https://chat.moorage.localhost, without a slash at the end. */
  readonly url: string;
  /** The app's own host name, where the URL is that of a gateway. */
  readonly host?: string | undefined;
}

/** Connections of one visitor. Who may vouch for the name of a gateway inside the cluster is not what is measured. */
export function connect({ host }: AppAddress): Agent {
  return new Agent(host === undefined ? {} : { connect: { servername: host, rejectUnauthorized: false } });
}

/** The header that names the app at a gateway. */
export function hostHeader({ url, host }: AppAddress): { host?: string } {
  if (host === undefined) return {};
  const { port } = new URL(url);
  return { host: port === '' ? host : `${host}:${port}` };
}

/** What went wrong below HTTP, in the words of the system. */
export function unreachable(error: unknown): string {
  const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error;
  return `the app could not be reached: ${cause instanceof Error ? cause.message : String(cause)}`;
}
