// What Vega and Vega-Lite say while they draw: a word that something else would be drawn is a refusal, the rest are
// warnings.
import * as vega from 'vega';

const maxWarnings = 20;

/** Words after which the picture is not what the specification says. */
const other = [
  /^Invalid specification/,
  /dropped as it is incompatible with/,
  /is dropped as .* is not a valid encoding channel/,
  /^Dropping .* from channel .* since it does not contain/,
  /^Ignoring an invalid/,
  /^Invalid (field type|aggregation operator|time ?unit)/i,
  /^Invalid \w+: /,
  /^Unknown repeated value/,
  /^Cannot find a selection named/,
  /^Facet encoding dropped/,
  /Offset dropped because/,
  /We are using "[\w-]+" scale instead/,
  /^Scale type .* does not work with mark/,
  /^Unrecognized (scale|transform|data|signal|parse)/i,
  /^Line marks cannot encode size/,
  /^Line mark is for continuous lines/,
  /^Projection type .* not/i,
];

export interface Notes {
  readonly logger: vega.LoggerInterface;
  readonly warnings: string[];
  /** Why something else would be drawn. */
  readonly refusals: string[];
}

export function takeNotes(): Notes {
  const warnings: string[] = [];
  const refusals: string[] = [];
  const note = (args: readonly unknown[]): vega.LoggerInterface => {
    const words = args
      .map((arg) => (arg instanceof Error ? arg.message : String(arg)))
      .join(' ')
      .slice(0, 300);
    if (other.some((pattern) => pattern.test(words))) refusals.push(words);
    else if (!warnings.includes(words) && warnings.length < maxWarnings) warnings.push(words);
    return logger;
  };
  const logger: vega.LoggerInterface = {
    level: (level?: number) => (level === undefined ? vega.Warn : logger),
    error: (...args: readonly unknown[]) => note(args),
    warn: (...args: readonly unknown[]) => note(args),
    info: () => logger,
    debug: () => logger,
  };
  return { logger, warnings, refusals };
}
