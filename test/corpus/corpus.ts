// The corpora: public repositories by name and commit, with the plan that a person who read them expects. The second one
// was chosen by rule (docs/measured/corpus-2.md), and half of it stays sealed: nobody has read those repositories.
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

export const verdicts = ['right', 'wrong', 'refused'] as const;
export type Verdict = (typeof verdicts)[number];

const repository = {
  repo: z.string().regex(/^[\w.-]{1,100}\/[\w.-]{1,100}$/),
  commit: z.string().regex(/^[0-9a-f]{40}$/),
  /** Judged by a person where the rule cannot tell; the key is planner@version. */
  judged: z.record(z.string(), z.strictObject({ verdict: z.enum(verdicts), reason: z.string().min(1) })).optional(),
};

const entry = z.strictObject({
  ...repository,
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
});
export type Entry = z.output<typeof entry>;

/** A repository to run: of a sealed one, only its name and commit are known. `half` is set in the second corpus. */
export type RunEntry = Pick<Entry, 'repo' | 'commit' | 'stack'> &
  Partial<Entry> & { readonly half?: 'open' | 'sealed' };

const selected = {
  /** In the list of docs/measured/corpus-2.md. Odd places are open, even ones sealed. */
  place: z.int().min(1).max(60),
  /** Of the commit. */
  files: z.int().min(1),
  bytes: z.int().min(1),
};

const openEntry = entry.extend({
  half: z.literal('open'),
  ...selected,
  /** A licence file at the top level. */
  hasLicense: z.boolean(),
  /** What its README says to start it. */
  readme: z.string().min(1),
});
export type OpenEntry = z.output<typeof openEntry>;

const sealedEntry = z.strictObject({ half: z.literal('sealed'), ...selected, ...repository });
export type SealedEntry = z.output<typeof sealedEntry>;

const secondCorpus = z.array(z.discriminatedUnion('half', [openEntry, sealedEntry]));

export const setNames = ['first', 'open', 'sealed'] as const;
export type SetName = (typeof setNames)[number];

/** Reads the first corpus. Parts of names, separated by commas, select entries. */
export function readCorpus(only?: string): Entry[] {
  return selectByName(z.array(entry).parse(readJson('corpus.json')), only);
}

/** Reads the half of the second corpus that people have read. */
export function readOpenHalf(only?: string): OpenEntry[] {
  return selectByName(readSecondCorpus(), only).filter((each) => each.half === 'open');
}

/** Reads the half of the second corpus that nobody has read. */
export function readSealedHalf(only?: string): (SealedEntry & RunEntry)[] {
  return selectByName(readSecondCorpus(), only)
    .filter((each) => each.half === 'sealed')
    .map((each) => ({ ...each, stack: 'sealed' }));
}

/** The second corpus in the order of its list. */
export function readSecondCorpus(): z.output<typeof secondCorpus> {
  return secondCorpus.parse(readJson('corpus-2.json'));
}

/** Every repository of both corpora, with what people have judged. */
export function readAllRepositories(): (Entry | z.output<typeof secondCorpus>[number])[] {
  return [...readCorpus(), ...readSecondCorpus()];
}

function readJson(file: string): unknown {
  return JSON.parse(readFileSync(join(import.meta.dirname, file), 'utf8'));
}

function selectByName<Named extends { repo: string }>(entries: readonly Named[], only: string | undefined): Named[] {
  if (only === undefined) return [...entries];
  const parts = only.toLowerCase().split(',');
  return entries.filter(({ repo }) => parts.some((part) => repo.toLowerCase().includes(part)));
}
