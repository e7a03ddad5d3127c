// Where apps answer: the one rule by which the operator and the API make the host name and the URL of an app.

/** The domain of the apps, and the port in the URLs that people see. */
export interface AppsSite {
  /** Each app answers at <app>.<domain>, and nothing else does. */
  readonly domain: string;
  readonly port: number;
}

/** Host name of an app. */
export function appHost(app: string, { domain }: AppsSite): string {
  return `${app}.${domain}`;
}

/** URL of an app, as people see it. */
export function appUrl(app: string, site: AppsSite): string {
  return new URL(`https://${appHost(app, site)}:${site.port}`).href;
}
