// The environment of the programs that a process starts: an allow-list, so that nothing given to the process leaks.

const inherited = [
  'PATH',
  'HTTP_PROXY',
  'HTTPS_PROXY',
  'NO_PROXY',
  'http_proxy',
  'https_proxy',
  'no_proxy',
  'SSL_CERT_FILE',
  'SSL_CERT_DIR',
  'GIT_SSL_CAINFO',
  'TMPDIR',
] as const;

/** Where to find programs, proxies and certificates, and nothing else. */
export function childEnvironment(variables: NodeJS.ProcessEnv = process.env): Record<string, string> {
  const kept = inherited.flatMap((name) => (variables[name] === undefined ? [] : [[name, variables[name]] as const]));
  return { LC_ALL: 'C.UTF-8', HOME: '/nonexistent', ...Object.fromEntries(kept) };
}
