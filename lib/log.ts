// The structured log of every process: JSON lines on stdout, secrets redacted.
import { pino, type Logger } from 'pino';

export type { Logger };

/** Makes the log of a process; level from LOG_LEVEL (default info). */
export function createLog(component: string): Logger {
  return pino({
    level: process.env['LOG_LEVEL'] ?? 'info',
    base: { component },
    timestamp: pino.stdTimeFunctions.isoTime,
    redact: [
      'authorization',
      '*.authorization',
      'headers.authorization',
      'req.headers.authorization',
      'password',
      '*.password',
      'token',
      '*.token',
    ],
    formatters: { level: (label) => ({ level: label }) },
  });
}
