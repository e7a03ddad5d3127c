// The shapes of the ranking as JSON.
import { z } from 'zod';
import { criteria } from './criteria.ts';

export const score = z.object({
  value: z.number().min(0).max(1).nullable().describe('From 0 to 1, higher is better; null where it is not measured.'),
  interval: z.tuple([z.number(), z.number()]).nullable().describe('95 % interval, where the formula has one.'),
  n: z.int().describe('How many observations it is made of.'),
  detail: z
    .object({
      requests: z.int().describe('Requests of a visitor until the answer, the page included.'),
      seconds: z
        .object({ p50: z.number().nullable(), p95: z.number().nullable() })
        .describe('Until the useful answer; null without one.'),
    })
    .nullable()
    .describe('Of onboarding, what a first visit takes; null for other scores and where nothing is measured.'),
  formula: z.string().describe('URL of the formula.'),
  reason: z.string().nullable().describe('Why the value is null.'),
});
export type Score = z.output<typeof score>;

export const rankedApp = z.object({
  slug: z.string(),
  title: z.string(),
  score: z
    .number()
    .nullable()
    .describe(
      'Total by the weights that were sent; null without weights, and where one falls on a value that is null.',
    ),
  score_reason: z.string().nullable().describe('Why the score is null.'),
  scores: z.object({ onboarding: score, quality: score, cost: score, stability: score, retention: score }),
  page: z.string().describe('URL of the page of the app.'),
  machine_readable: z.string().describe('URL of the app as JSON.'),
});
export type RankedApp = z.output<typeof rankedApp>;

export const rankList = z.object({
  weights: z.partialRecord(z.enum(criteria), z.number()).nullable().describe('The weights that were sent.'),
  formulas: z.string().describe('URL of the formulas.'),
  apps: z.array(rankedApp).describe('The highest score first; without weights by title.'),
  total: z.int().describe('Number of apps on all pages.'),
  next: z.string().nullable().describe('URL of the next page; null on the last one.'),
});
export type RankList = z.output<typeof rankList>;

export const formulaList = z.object({
  formulas: z.array(
    z.object({
      id: z.enum([...criteria, 'score']),
      title: z.string(),
      formula: z.string(),
      data: z.string().describe('What it is computed from.'),
      interval: z.string().describe('How the interval is made.'),
      null_when: z.string().describe('When there is no value.'),
    }),
  ),
});
