// Bounds what a child process learns from us and how much of its output we keep.

/** An allow-list, so that no variable that was given to this process reaches another program. */
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

/** The environment of a child process: where to find programs, proxies and certificates, and nothing else. */
export function buildChildEnvironment(variables: NodeJS.ProcessEnv = process.env): Record<string, string> {
  const environment = inherited.flatMap((name) =>
    variables[name] === undefined ? [] : [[name, variables[name]] as const],
  );
  return { LC_ALL: 'C.UTF-8', HOME: '/nonexistent', ...Object.fromEntries(environment) };
}

/** Keeps the last bytes of a stream, so that the memory used for a program that prints without end stays bounded. */
export class OutputTail {
  readonly #limit: number;
  #chunks: Buffer[] = [];
  #bytes = 0;

  constructor(limit: number) {
    this.#limit = limit;
  }

  add(chunk: Buffer): void {
    this.#chunks.push(chunk);
    this.#bytes += chunk.length;
    if (this.#bytes > 2 * this.#limit) this.#compact();
  }

  toText(): string {
    this.#compact();
    return Buffer.concat(this.#chunks).toString('utf8');
  }

  #compact(): void {
    const output = Buffer.concat(this.#chunks);
    const tail = output.length > this.#limit ? Buffer.from(output.subarray(output.length - this.#limit)) : output;
    this.#chunks = [tail];
    this.#bytes = tail.length;
  }
}
