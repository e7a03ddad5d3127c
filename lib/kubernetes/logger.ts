// The part of a logger that the runtime uses; pino's fits as it is.

/** Writes one structured line. */
type LogLine = (fields: object, message: string) => void;

/** A structured logger (pino's interface). */
export interface Logger {
  debug: LogLine;
  info: LogLine;
  warn: LogLine;
  error: LogLine;
}

const nothing: LogLine = () => undefined;

/** Says nothing: the default where no logger is given. */
export const silentLogger: Logger = { debug: nothing, info: nothing, warn: nothing, error: nothing };
