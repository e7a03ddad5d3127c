// Tells by the words of a log that the network was the cause: a host that could not be reached, a base image not had.

export interface Evidence {
  readonly kind: 'host' | 'base image';
  /** The host or the image. */
  readonly what: string;
  /** The line of the log. */
  readonly line: string;
}

const host = String.raw`([a-z0-9][a-z0-9.-]{0,200}\.[a-z]{2,20})`;
/** Words of resolvers and clients; what they could not reach is in the first group. */
const unreachable: readonly RegExp[] = [
  // What Moorage itself saw: with --silent or --quiet, curl and wget leave their exit code only.
  new RegExp(String.raw`The build could not reach ${host}`),
  new RegExp(String.raw`Could not resolve host(?:name)?:? ['"]?${host}`, 'i'),
  new RegExp(String.raw`getaddrinfo (?:ENOTFOUND|EAI_AGAIN) ${host}`, 'i'),
  new RegExp(String.raw`(?:dial tcp|lookup)[: ]{1,3}(?:lookup )?${host}`, 'i'),
  new RegExp(String.raw`unable to resolve host address ['"‘]?${host}`, 'i'),
  new RegExp(String.raw`host='${host}'.{0,200}(?:Max retries exceeded|ConnectTimeout|NameResolutionError)`, 'i'),
  new RegExp(
    String.raw`(?:NameResolutionError|NewConnectionError|ConnectTimeoutError|Max retries exceeded).{0,200}host='?${host}`,
    'i',
  ),
  new RegExp(
    String.raw`(?:Failed to connect to|Connection to|connect to) ${host}.{0,60}(?:timed out|refused|failed|port)`,
    'i',
  ),
  new RegExp(String.raw`(?:ETIMEDOUT|ECONNREFUSED|ECONNRESET|UND_ERR_CONNECT_TIMEOUT).{0,120}https?://${host}`, 'i'),
  new RegExp(
    String.raw`https?://${host}\S{0,300}.{0,120}(?:ETIMEDOUT|ECONNREFUSED|ECONNRESET|dns error|failed to lookup|Temporary failure in name resolution|Could not connect|403 Forbidden)`,
    'i',
  ),
  new RegExp(
    String.raw`(?:dns error|failed to lookup address|Temporary failure in name resolution|error sending request for url \().{0,200}https?://${host}`,
    'i',
  ),
];

const image = String.raw`([a-z0-9][\w.:/@-]{1,250})`;
const noImage: readonly RegExp[] = [
  new RegExp(String.raw`${image}: failed to resolve source metadata`, 'i'),
  new RegExp(String.raw`failed to resolve source metadata for ${image}`, 'i'),
  new RegExp(String.raw`pull access denied for ${image}`, 'i'),
  new RegExp(String.raw`base image ['"]?${image}['"]? (?:is not available|could not be|cannot be)`, 'i'),
];

/** Longer lines are minified code or data. */
const maximumLine = 2_000;

/** The first line that says so; an image before a host, since the resolver of images names hosts too. */
export function networkEvidence(lines: readonly string[]): Evidence | undefined {
  return find(lines, noImage, 'base image') ?? find(lines, unreachable, 'host');
}

function find(lines: readonly string[], patterns: readonly RegExp[], kind: Evidence['kind']): Evidence | undefined {
  for (const whole of lines) {
    const line = whole.slice(0, maximumLine);
    for (const pattern of patterns) {
      const what = pattern.exec(line)?.[1];
      if (what !== undefined) return { kind, what: what.replace(/[.:,]+$/, ''), line: line.trim().slice(0, 300) };
    }
  }
  return undefined;
}
