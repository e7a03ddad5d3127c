// The corpus: public repositories by name and commit, with the plan that a person who read them expects.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';

const languages = ['python', 'node', 'bun', 'deno', 'go', 'rust', 'java', 'php', 'ruby', 'dotnet', 'elixir'] as const;
export type Language = (typeof languages)[number];

const common = {
  /** The app's folder, when it is not the top. */
  folder: z.string().optional(),
  port: z.int().optional(),
  /** Backing services without which it does not work. */
  services: z.array(z.string()).optional(),
};

/** A program is started. */
const program = z.strictObject({
  ...common,
  strategy: z.enum(languages),
  /** Any of these is in the start command, `*` for anything between; none where the language has one way only. */
  start: z.array(z.string().min(1)),
  /** All of these are in what is built or started. */
  must: z.array(z.string().min(1)).optional(),
});

/** Files are served. */
const files = z.strictObject({
  ...common,
  strategy: z.literal('static'),
  /** The served folder, seen from `folder`. */
  serves: z.string(),
});

/** Several programs that need one another. */
const parts = z.strictObject({
  ...common,
  strategy: z.literal('parts'),
  /** What names each of them in a plan: a folder, or a part of its start command. */
  parts: z.array(z.string().min(1)).min(2),
});

/** No web app, or one that no such host can run. */
const refusal = z.strictObject({ refuse: z.string().min(1) });

const expectation = z.union([program, files, parts, refusal]);
export type Expectation = z.output<typeof expectation>;

const verdicts = ['right', 'wrong', 'refused'] as const;
export type Verdict = (typeof verdicts)[number];

const entry = z.strictObject({
  repo: z.string().regex(/^[\w.-]{1,100}\/[\w.-]{1,100}$/),
  commit: z.string().regex(/^[0-9a-f]{40}$/),
  stack: z.string().min(1),
  /** Of the commit. */
  year: z.int().min(2010).max(2040),
  hasDockerfile: z.boolean(),
  expected: expectation,
  /** Other plans that are as right. */
  also: z.array(expectation).optional(),
  needs: z
    .strictObject({
      /** Settings that only a user can give. */
      keys: z.array(z.string()).optional(),
      services: z.array(z.string()).optional(),
      gpu: z.boolean().optional(),
      /** Addresses besides the package registries. */
      network: z.boolean().optional(),
    })
    .optional(),
  /** One thing that works when the app works. */
  interaction: z.strictObject({ path: z.string().startsWith('/'), contains: z.string().min(1) }).optional(),
  note: z.string().optional(),
  /** Judged by a person where the rule cannot tell; the key is planner@version. */
  judged: z.record(z.string(), z.strictObject({ verdict: z.enum(verdicts), reason: z.string().min(1) })).optional(),
});
export type Entry = z.output<typeof entry>;

/** Reads the corpus; parts of names, with commas between them, choose. */
export function readCorpus(only?: string): Entry[] {
  const text = readFileSync(join(import.meta.dirname, 'corpus.json'), 'utf8');
  const all = z.array(entry).parse(JSON.parse(text));
  if (only === undefined) return all;
  const parts = only.toLowerCase().split(',');
  return all.filter(({ repo }) => parts.some((part) => repo.toLowerCase().includes(part)));
}
