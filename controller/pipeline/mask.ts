// Masks the secrets that a pipeline container was given in what it prints and reports: its log is public.
import { createSecretMask, isSecretName, type SecretMask } from '../../lib/secret-mask.ts';
import type { PipelineConfig } from './config.ts';
import type { StageMessage } from './message.ts';

/** The token for the registry, and what the installation or the author gave to the build under the name of a secret. */
export function pipelineMask({ input, pushToken }: Pick<PipelineConfig, 'input' | 'pushToken'>): SecretMask {
  const given = [...input.build.env, ...input.build.args].filter(({ name }) => isSecretName(name));
  return createSecretMask({ values: [pushToken, ...given.map(({ value }) => value)] });
}

/** The texts of a message; identifiers, digests and addresses stay as they are. */
export function maskMessage(message: StageMessage, mask: SecretMask): StageMessage {
  const copy = { ...message };
  if ('fault' in copy) copy.fault = mask(copy.fault);
  if ('log' in copy && copy.log !== undefined) copy.log = mask(copy.log);
  if ('findings' in copy)
    copy.findings = copy.findings.map((each) => ({ ...each, message: mask(each.message), fix: mask(each.fix) }));
  return copy;
}

const newline = 10;
const maxLine = 64 * 1024;

/** Passes on output line by line, masked: a program may write a line in pieces. */
export class MaskedLines {
  readonly #mask: SecretMask;
  readonly #print: (text: string) => void;
  #rest: Buffer = Buffer.alloc(0);

  constructor(mask: SecretMask, print: (text: string) => void) {
    this.#mask = mask;
    this.#print = print;
  }

  write(chunk: Uint8Array | string): void {
    const whole = Buffer.concat([this.#rest, Buffer.from(chunk as Uint8Array)]);
    // A line without an end is passed on at some length, so that it fills no memory.
    const end = whole.length > maxLine ? whole.length : whole.lastIndexOf(newline) + 1;
    this.#rest = whole.subarray(end);
    if (end > 0) this.#print(this.#mask(whole.subarray(0, end).toString('utf8')));
  }

  /** Passes on what is left. */
  end(): void {
    if (this.#rest.length > 0) this.#print(this.#mask(this.#rest.toString('utf8')));
    this.#rest = Buffer.alloc(0);
  }
}
