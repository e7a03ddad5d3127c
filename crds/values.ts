// The kinds of value that HostedApp fields are made of: quantities, durations, paths, names.
import { z } from 'zod';
import { parseDuration } from '../lib/values.ts';
import { celString, matches, withRules, type Rule } from './rules.ts';

const suffixes: Readonly<Record<string, number>> = {
  '': 1,
  m: 1e-3,
  k: 1e3,
  M: 1e6,
  G: 1e9,
  T: 1e12,
  Ki: 2 ** 10,
  Mi: 2 ** 20,
  Gi: 2 ** 30,
  Ti: 2 ** 40,
};
const quantityPattern = /^([0-9]{1,15}(?:\.[0-9]{1,3})?)(m|k|M|G|T|Ki|Mi|Gi|Ti)?$/;

/** Number that a Kubernetes quantity stands for, in cores or bytes; undefined for any other text. */
export function quantityValue(text: string): number | undefined {
  const match = quantityPattern.exec(text);
  return match === null ? undefined : Number(match[1]) * (suffixes[match[2] ?? ''] ?? Number.NaN);
}

/** A Kubernetes quantity between two others, both included. */
export function quantity(what: string, least: string, maximum: string): z.ZodString {
  const [low, high] = [quantityValue(least) ?? Number.NaN, quantityValue(maximum) ?? Number.NaN];
  const form = celString('^[0-9]{1,15}([.][0-9]{1,3})?(m|k|M|G|T|Ki|Mi|Gi|Ti)?$');
  return withRules(z.string().max(24), {
    cel: `self.matches(${form}) && quantity(self).compareTo(quantity(${celString(least)})) >= 0 && quantity(self).compareTo(quantity(${celString(maximum)})) <= 0`,
    holds: (text) => {
      const value = quantityValue(text);
      return value !== undefined && value >= low && value <= high;
    },
    message: `${what} must be a quantity from ${least} to ${maximum}, like ${least}; write a plain number or one with m, k, M, G, T, Ki, Mi, Gi or Ti`,
  });
}

const durationPattern = /^([0-9]{1,5}h)?([0-9]{1,5}m)?([0-9]{1,5}s)?$/;

/** A duration like 90s, 5m or 1h30m between two others, both included. Absent `maximum`: no upper bound. */
export function duration(what: string, least: string, maximum: string): z.ZodString {
  const [low, high] = [parseDuration(least), parseDuration(maximum)];
  return withRules(z.string().max(20), {
    cel: `self.size() > 0 && self.matches(${celString(durationPattern.source)}) && duration(self) >= duration(${celString(least)}) && duration(self) <= duration(${celString(maximum)})`,
    holds: (text) =>
      text !== '' && durationPattern.test(text) && parseDuration(text) >= low && parseDuration(text) <= high,
    message: `${what} must be a duration from ${least} to ${maximum}, written like 90s, 5m or 1h30m`,
  });
}

/** A path inside the repository: relative, and it stays inside. */
export function relativePath(what: string): z.ZodString {
  return withRules(
    z.string().min(1).max(200),
    matches(
      String.raw`^[^\x00-\x1f\x7f\\/][^\x00-\x1f\x7f\\]*$`,
      `${what} must be relative to the repository: no leading /, no backslash, no control character`,
    ),
    noParentSegment(what),
  );
}

/** No `..` between slashes. */
export function noParentSegment(what: string): Rule<string> {
  return {
    cel: `!self.split('/').exists(part, part == '..')`,
    holds: (text) => !text.split('/').includes('..'),
    message: `${what} must not contain ".."; use a path without parent folders`,
  };
}

/** Name of an environment variable. */
export const environmentName = withRules(
  z.string().max(128),
  matches(
    '^[A-Za-z_][A-Za-z0-9_]*$',
    'the name of a variable must contain only letters, digits and _, and must not start with a digit',
  ),
);

/** Name of a variable of the running app. PORT is not allowed, since the platform sets it. */
export const appVariableName = withRules(environmentName, {
  cel: `self != 'PORT'`,
  holds: (name) => name !== 'PORT',
  message: 'PORT is set by the platform; set run.port instead',
});

/** An instant on the wire. */
export const timestamp = z.iso.datetime().describe('RFC 3339 time, UTC.');
