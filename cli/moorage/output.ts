// Prints results, notes and errors of `moorage`, and asks questions: for a person on a terminal, or as JSON for a program.
import { createInterface } from 'node:readline/promises';
import { Writable, type Readable } from 'node:stream';
import { styleText } from 'node:util';
import { z } from 'zod';
import { toHarmlessText } from '../../lib/harmless-text.ts';
import { UsageError } from '../../lib/command-line.ts';
import { Fault, Unavailable, type Refusal } from '../submit/installation.ts';
import { exitCodes } from './program.ts';

/** A stream to write to, which may be a terminal. */
export interface TextOutput {
  readonly isTTY?: boolean;
  readonly columns?: number;
  write: (text: string | Uint8Array) => boolean;
}

export interface TerminalStreams {
  readonly stdin: Readable & { readonly isTTY?: boolean };
  readonly stdout: TextOutput;
  readonly stderr: TextOutput;
}

type Style = 'bold' | 'dim' | 'green' | 'red' | 'yellow';

/** A row of a table by column. */
export type Row = Readonly<Record<string, string>>;

/** Where a command writes, and whom it asks. */
export class Terminal {
  readonly isJson: boolean;
  /** Whether a person can answer questions. */
  readonly isInteractive: boolean;
  readonly isOutputTerminal: boolean;
  readonly #streams: TerminalStreams;
  readonly #hasColor: boolean;

  constructor(streams: TerminalStreams, environment: NodeJS.ProcessEnv, isJson: boolean) {
    this.#streams = streams;
    this.isJson = isJson;
    this.isInteractive = streams.stdin.isTTY === true && streams.stderr.isTTY === true;
    this.isOutputTerminal = streams.stdout.isTTY === true;
    this.#hasColor =
      this.isOutputTerminal && (environment['NO_COLOR'] ?? '') === '' && environment['TERM'] !== 'dumb' && !isJson;
  }

  /** Prints a line of the result. Text of others must be made harmless before. */
  printLine(line: string): void {
    this.#streams.stdout.write(`${line}\n`);
  }

  /** Writes a download as it is. */
  writeBytes(bytes: Uint8Array): void {
    this.#streams.stdout.write(bytes);
  }

  /** Prints for a person what is no part of the result. */
  printNote(line: string): void {
    this.#streams.stderr.write(`${line}\n`);
  }

  /** Prints the result: as one JSON document, or as the text for a person. */
  printResult(value: unknown, formatText: () => string | readonly string[]): void {
    if (this.isJson) this.printLine(JSON.stringify(value, undefined, 2));
    else for (const line of [formatText()].flat()) this.printLine(line);
  }

  /** Prints one of many JSON documents. */
  printJsonLine(value: unknown): void {
    this.printLine(JSON.stringify(value));
  }

  style(style: Style, text: string): string {
    return this.#hasColor ? styleText(style, text, { validateStream: false }) : text;
  }

  /** Lines of a table. On a terminal, the widest columns are cut until it fits. */
  formatTable(rows: readonly Row[], none: string): string[] {
    const [first] = rows;
    if (first === undefined) return [none];
    const columns = [...new Set(rows.flatMap((row) => Object.keys(row)))];
    const cells = rows.map((row) => columns.map((column) => toHarmlessText(row[column] ?? '')));
    const header = columns.map((column) => column.toUpperCase());
    const widths = fitWidths(
      columns.map((_, index) => Math.max(...[header, ...cells].map((line) => (line[index] ?? '').length))),
      this.isOutputTerminal ? (this.#streams.stdout.columns ?? 80) : Number.POSITIVE_INFINITY,
    );
    const format = (line: readonly string[]): string =>
      line
        .map((cell, index) => cutText(cell, widths[index] ?? 0).padEnd(widths[index] ?? 0))
        .join(gap)
        .trimEnd();
    return [this.style('bold', format(header)), ...cells.map(format)];
  }

  /** Asks for a line. @throws UsageError if nobody can answer */
  async ask(question: string): Promise<string> {
    return (await this.#question(`${question} `, this.#streams.stderr)).trim();
  }

  /** Reads a secret: without an echo from a terminal, else everything from standard input, less one line break at its end. */
  async readSecret(question: string): Promise<string> {
    if (this.#streams.stdin.isTTY !== true) return (await readAll(this.#streams.stdin)).replace(/\r?\n$/, '');
    // Without a terminal to write to, the terminal that is read would echo the secret.
    if (!this.isInteractive) throw new UsageError(`there is no terminal to answer "${question}"`);
    this.#streams.stderr.write(`${question} `);
    const answer = await this.#question('', { write: () => true });
    this.#streams.stderr.write('\n');
    return answer;
  }

  async #question(question: string, echo: TextOutput): Promise<string> {
    if (!this.isInteractive) throw new UsageError(`there is no terminal to answer "${question.trim()}"`);
    const output = new Writable({
      write: (chunk: Buffer, _encoding, done) => {
        echo.write(chunk.toString('utf8'));
        done();
      },
    });
    const reader = createInterface({ input: this.#streams.stdin, output, terminal: true });
    try {
      return await new Promise<string>((resolve, reject) => {
        reader.once('close', () => {
          reject(new Fault('nothing was entered'));
        });
        reader.question(question).then(resolve, reject);
      });
    } finally {
      reader.close();
    }
  }
}

async function readAll(input: Readable): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of input) chunks.push(Buffer.from(chunk as Buffer));
  return Buffer.concat(chunks).toString('utf8');
}

const gap = '  ';
/** Narrower columns are not cut. */
const minimumWidth = 8;

/** Takes from the widest column until all fit, if they can. */
function fitWidths(natural: readonly number[], available: number): number[] {
  const widths = [...natural];
  const measure = (): number => widths.reduce((sum, width) => sum + width, 0) + gap.length * (widths.length - 1);
  while (measure() > available) {
    const widest = Math.max(...widths);
    if (widest <= minimumWidth) break;
    widths[widths.lastIndexOf(widest)] = widest - 1;
  }
  return widths;
}

function cutText(text: string, width: number): string {
  return text.length <= width ? text : `${text.slice(0, Math.max(0, width - 1)).replace(/[\ud800-\udbff]$/, '')}…`;
}

/** A name and a value per line. Rows without a value are left out. */
export function formatFields(fields: readonly (readonly [string, string | undefined])[]): string[] {
  const present = fields.flatMap(([name, value]) =>
    value === undefined || value === '' ? [] : [[name, value] as const],
  );
  const width = Math.max(0, ...present.map(([name]) => name.length));
  return present.map(([name, value]) => `${name.padEnd(width)}  ${toHarmlessText(value)}`);
}

/** Rows with the plain values of objects whose fields may be more than this version knows. */
export function toRows(items: readonly Readonly<Record<string, unknown>>[]): Row[] {
  return items.map((item) =>
    Object.fromEntries(
      Object.entries(item).flatMap(([name, value]) =>
        value === undefined || value === null ? [] : [[name, formatValue(value)]],
      ),
    ),
  );
}

export function formatValue(value: unknown): string {
  if (typeof value === 'string') return isTimestamp(value) ? formatTime(value) : value;
  return typeof value === 'boolean' ? (value ? 'yes' : 'no') : JSON.stringify(value);
}

const isTimestamp = (text: string): boolean => /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d/.test(text);

/** An RFC 3339 time, to the second. */
export function formatTime(text: string): string {
  return text.replace('T', ' ').replace(/\.\d+/, '').replace('+00:00', 'Z');
}

// Errors

const problemBody = z.looseObject({
  type: z.string().optional(),
  title: z.string().optional(),
  detail: z.string().optional(),
  fix: z.string().optional(),
  request_id: z.string().optional(),
  errors: z
    .array(z.looseObject({ field: z.string().optional(), message: z.string(), fix: z.string().optional() }))
    .optional(),
});

/** The last part of a problem's type, such as `unknown-app`. */
export function readProblemSlug({ problem }: Refusal): string | undefined {
  return problemBody.safeParse(problem).data?.type?.split('/').at(-1);
}

/** Prints why a command failed, with its usage if the command line is wrong, and returns its exit code. */
export function reportError(error: Error, terminal: Terminal, usage: string): number {
  const refusal = error instanceof Fault ? error.refusal : undefined;
  if (terminal.isJson) terminal.printNote(JSON.stringify(toErrorDocument(error, refusal)));
  else for (const line of formatError(error, refusal)) terminal.printNote(line);
  if (error instanceof UsageError) {
    if (!terminal.isJson) terminal.printNote(usage);
    return exitCodes.usage;
  }
  return isUnreachable(error) && refusal === undefined ? exitCodes.unreachable : exitCodes.refused;
}

function isUnreachable(error: unknown): boolean {
  return error instanceof Unavailable || (error instanceof Error && isUnreachable(error.cause));
}

function toErrorDocument(error: Error, refusal: Refusal | undefined): unknown {
  if (refusal === undefined) return { title: error.message };
  const parsed = problemBody.safeParse(refusal.problem);
  const common = { status: refusal.status, request_id: refusal.requestId };
  return parsed.success ? { ...common, ...parsed.data } : { ...common, title: error.message };
}

function formatError(error: Error, refusal: Refusal | undefined): string[] {
  const problem = problemBody.safeParse(refusal?.problem).data;
  if (refusal === undefined || problem?.title === undefined)
    return [
      ...error.message.split('\n').map((line, index) => `${index === 0 ? 'error: ' : ''}${toHarmlessText(line)}`),
      ...formatRequestId(refusal?.requestId),
    ];
  const { title, detail = '', fix, errors = [] } = problem;
  return [
    `error: ${title}`,
    ...(detail === '' ? [] : [`  ${detail}`]),
    ...errors.map(
      ({ field = '', message, fix: advice }) =>
        `  ${[field, message].filter((text) => text !== '').join(' ')}${advice === undefined ? '' : `. ${advice}`}`,
    ),
    ...[fix, suggestFix(refusal)].flatMap((text) => (text === undefined ? [] : [`  fix: ${text}`])),
    ...formatRequestId(problem.request_id ?? refusal.requestId),
  ].map((line) => toHarmlessText(line));
}

function formatRequestId(id: string | undefined): string[] {
  return id === undefined ? [] : [`  request: ${toHarmlessText(id)}`];
}

/** What this program offers against a refusal. */
function suggestFix(refusal: Refusal): string | undefined {
  switch (readProblemSlug(refusal)) {
    case 'app-key-required':
      return '`moorage login APP` stores a key, or gets a new one and prints the line to commit';
    case 'app-private':
    case 'not-author':
      return '`moorage login APP` prints the line of your key: commit it to .moorage-owner and push';
    case 'not-submitted':
      return '`moorage submit` submits a repository or a folder';
    default:
      return undefined;
  }
}
