// Knows a step that could not reach an address from one that failed by itself, and names the address.

const googleFonts = /Failed to fetch (?:font )?`[^`]{1,100}` from Google Fonts/;

/** What package managers and programs print when a name has no address, or nobody answers there. */
const unreachable: readonly RegExp[] = [
  /Could not resolve host|Temporary failure (?:in name resolution|resolving)|Name or service not known|nodename nor servname/i,
  /getaddrinfo|ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ECONNRESET|ETIMEDOUT|EHOSTUNREACH|ENETUNREACH|socket hang up/,
  /Network is unreachable|Connection (?:refused|timed out|reset by peer)|No route to host/i,
  /Failed to establish a new connection|error sending request|dns error|failed to lookup address|client error \(Connect\)/i,
  // Poetry; Cargo; Go; uv; curl and wget; Yarn; pnpm; Maven and Gradle.
  /All attempts to connect to \S{1,200} failed|failed to download from `|spurious network error|dial tcp\b|i\/o timeout|no such host/i,
  /Failed to fetch: `http|curl: \((?:6|7|28|35|56)\)|unable to resolve host address|There appears to be trouble with your network/i,
  // Next.js, which does not name the host.
  googleFonts,
  // Bundler and RubyGems, which break a sentence where a terminal ends.
  /Could not fetch specs from |Could not reach host |Bundler::HTTPError|Gem::RemoteFetcher::FetchError/,
  // NuGet; Mix and Hex, which name the cause in the words of Erlang.
  /Unable to load the service index for source|:failed_connect\b|:nxdomain\b|Could not install (?:Hex|Rebar) because Mix could not download|Failed to fetch record for/i,
  /ERR_PNPM_META_FETCH_FAIL|UnknownHostException|Unknown host|TLS handshake timeout|SSL_ERROR_SYSCALL|operation timed out/i,
];
const addresses: readonly RegExp[] = [
  /:to_address, \{~?c?["']([A-Za-z0-9][A-Za-z0-9.-]{1,250}\.[A-Za-z]{2,30})/,
  /\bhttps?:\/\/(?:[^\s/@"'`]{1,100}@)?([A-Za-z0-9][A-Za-z0-9.-]{1,250}\.[A-Za-z]{2,30})/,
  /(?:host(?:name)?(?: address)?|lookup|ENOTFOUND|EAI_AGAIN|connect to|host=|resolving)[ :='"‘]{1,4}([A-Za-z0-9][A-Za-z0-9.-]{1,250}\.[A-Za-z]{2,30})/i,
];
/** Lines in which such words are no fault: a warning that another try follows. */
const retried = /\b(?:will retry|retrying|attempt \d+ of)\b/i;

const local = /\b(?:127\.0\.0\.1|localhost)\b|::1\b/;

export interface NetworkFault {
  readonly line: string;
  /** Host that was not reached; undefined when no line names it. */
  readonly host: string | undefined;
  /** Its number among the lines. */
  readonly index: number;
  /** The address is the machine's own. */
  readonly isLocal: boolean;
}

/** The first line that says so, with the host of that line or of one beside it. */
export function networkFault(lines: readonly string[]): NetworkFault | undefined {
  const matching = lines.flatMap((line, index) => (unreachable.some((each) => each.test(line)) ? [index] : []));
  const index = matching.find((each) => !retried.test(lines[each] ?? '')) ?? matching[0];
  if (index === undefined) return silentFault(lines);
  const line = lines[index] ?? '';
  const near = [line, ...lines.slice(Math.max(0, index - 3), index + 4)];
  return {
    line: line.trim(),
    host: near.map(hostOf).find((host) => host !== undefined),
    index,
    isLocal: local.test(line),
  };
}

const ended = /process "(.{1,8000})" did not complete successfully: exit code: (\d{1,3})\b/;
/** Codes by which curl and wget end when they reach nobody; with --silent they print nothing. */
const silent: readonly { readonly program: RegExp; readonly codes: readonly string[] }[] = [
  { program: /\bcurl\b/, codes: ['6', '7', '28', '35', '56'] },
  { program: /\bwget\b/, codes: ['4'] },
];

/** A step that ended as curl or wget does without a network, with the first address that it names. */
function silentFault(lines: readonly string[]): NetworkFault | undefined {
  const index = lines.findIndex((line) => ended.test(line));
  const [, command = '', code = ''] = ended.exec(lines[index] ?? '') ?? [];
  if (!silent.some(({ program, codes }) => program.test(command) && codes.includes(code))) return undefined;
  return { line: lines[index] ?? '', host: hostOf(command), index, isLocal: local.test(command) };
}

function hostOf(line: string): string | undefined {
  if (googleFonts.test(line)) return 'fonts.googleapis.com';
  return addresses.map((each) => each.exec(line)?.[1]).find((host) => host !== undefined);
}
