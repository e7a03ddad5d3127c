// Research in steps: plan searches, search, read pages and take notes, look for gaps, write the answer with citations.
import { z } from 'zod';
import { Problem, type ProblemType } from '../../../../lib/problem.ts';
import type { Money } from '../../../billing/index.ts';
import { modelFailed, modelRefused, modelTimeout, routerUnavailable } from '../../../models/index.ts';
import { askJson } from '../../engine/ask-json.ts';
import { toolFailed } from '../../problems.ts';
import type { Prompt, Reply, Spender } from '../../engine/spender.ts';
import type { Progress } from '../../tool.ts';
import { Budget, BudgetExhausted } from './budget.ts';
import { citedOnly, type CitedAnswer, type Source } from './citations.ts';
import { nothingFound } from './nothing-found.ts';
import * as words from './words.ts';

/** How far a question is followed. */
export interface Depth {
  readonly rounds: number;
  /** Searches in a round. */
  readonly queries: number;
  /** Pages in all. */
  readonly pages: number;
}

/** Where it looks. */
export interface Web {
  /** @throws Problem */
  search(query: string): Promise<readonly Source[]>;
  read(url: string): Promise<Source & { readonly text: string }>;
}

export interface ResearchOptions {
  readonly question: string;
  readonly depth: Depth;
  readonly model: string;
  readonly models: Spender;
  readonly web: Web;
  readonly limit: Money;
  readonly report: (progress: Progress) => void;
}

export interface Findings extends CitedAnswer {
  readonly searches: readonly string[];
  /** Pages that were of use, cited or not. */
  readonly read: readonly Source[];
  /** Pages and searches that failed. */
  readonly unread: readonly { readonly url: string; readonly reason: string }[];
  readonly calls: number;
  /** Whether the budget ended the search for more. */
  readonly cut: boolean;
}

const pageCharacters = 16_000;
const noteTokens = 600;
const answerTokens = 2_500;
const atOnce = 3;
const queriesForm = z.object({ queries: z.array(z.string().trim().min(2).max(300)).max(10) });

export class Research {
  readonly #options: ResearchOptions;
  readonly #budget: Budget;
  /** Kept until the answer is written. */
  readonly #kept: Money;
  readonly #notes: (Source & { readonly note: string })[] = [];
  readonly #searches: string[] = [];
  /** What came of each search, in words. */
  readonly #outcomes = new Map<string, string>();
  /** Pages that were read and say nothing about the question. */
  readonly #irrelevant: string[] = [];
  readonly #seen = new Set<string>();
  readonly #unread: { url: string; reason: string }[] = [];
  #tried = 0;
  #cut = false;

  constructor(options: ResearchOptions) {
    const { models, limit, depth, question, model } = options;
    this.#options = options;
    this.#budget = new Budget(models, limit, 4 + depth.rounds * 2 + depth.pages);
    this.#kept = models.maxCost({
      ...words.largest(question, depth.pages, noteTokens),
      model,
      maxTokens: answerTokens,
    });
  }

  /**
   * @throws Problem (tool-failed) when nothing could be read that has to do with the question, and what the models
   * refuse with
   */
  async run(): Promise<Findings> {
    const { depth } = this.#options;
    for (let round = 1; round <= depth.rounds && !this.#isCut(); round += 1) {
      const queries = await this.#queries(round);
      if (queries.length === 0) break;
      await this.#follow(queries, round);
    }
    if (this.#notes.length === 0) throw this.#nothing();
    const cited = await this.#write();
    return {
      ...cited,
      searches: this.#searches,
      read: this.#notes.map(({ title, url }) => ({ title, url })),
      unread: this.#unread,
      calls: this.#budget.calls,
      cut: this.#isCut(),
    };
  }

  #isCut(): boolean {
    return this.#cut;
  }

  async #queries(round: number): Promise<string[]> {
    const { question, depth, report } = this.#options;
    report({ done: this.#done(round - 1), message: round === 1 ? 'planning the searches' : 'looking for gaps' });
    const prompt =
      round === 1
        ? words.plan(question, depth.queries)
        : words.gaps(question, depth.queries, this.#searches, this.#notes);
    const asked = await this.#within(() =>
      askJson((one) => this.#ask(one), { schema: queriesForm, system: words.planner, prompt, maxTokens: 400 }),
    );
    return (asked?.value.queries ?? []).filter((query) => !this.#searches.includes(query)).slice(0, depth.queries);
  }

  /** Searches, and reads the best of what is found, in turn over the queries. */
  async #follow(queries: readonly string[], round: number): Promise<void> {
    const {
      depth: { pages, rounds },
      report,
    } = this.#options;
    report({ done: this.#done(round - 0.9), message: `searching: ${queries.join('; ')}` });
    this.#searches.push(...queries);
    const hits = inTurn(await Promise.all(queries.map((query) => this.#search(query)))).filter(
      ({ url }) => !this.#seen.has(url),
    );
    const chosen = [...new Map(hits.map((hit) => [hit.url, hit])).values()].slice(
      0,
      Math.min(Math.ceil(pages / rounds), pages - this.#tried),
    );
    for (const { url } of chosen) this.#seen.add(url);
    this.#tried += chosen.length;
    const queue = chosen.entries();
    await Promise.all(
      Array.from({ length: atOnce }, async () => {
        for (const [index, hit] of queue) {
          if (this.#isCut()) return;
          report({ done: this.#done(round - 0.8 + (0.8 * index) / chosen.length), message: `reading ${hit.url}` });
          await this.#read(hit);
        }
      }),
    );
  }

  async #search(query: string): Promise<readonly Source[]> {
    try {
      const hits = await this.#options.web.search(query);
      this.#outcomes.set(query, hits.length === 1 ? '1 result' : `${hits.length} results`);
      return hits;
    } catch (error) {
      this.#outcomes.set(query, `failed: ${reasonOf(error).replace(/\.$/, '')}`);
      this.#unread.push({ url: `search: ${query}`, reason: reasonOf(error) });
      return [];
    }
  }

  /** A page that cannot be read, or noted from, is left out; a refusal that is about the caller ends it all. */
  async #read(hit: Source): Promise<void> {
    const { question, web } = this.#options;
    const page = await web.read(hit.url).catch((error: unknown) => {
      this.#unread.push({ url: hit.url, reason: reasonOf(error) });
    });
    if (page === undefined) return;
    try {
      const prompt = words.read(question, page, page.text.slice(0, pageCharacters).toWellFormed());
      const reply = await this.#within(() => this.#ask({ system: words.reader, prompt, maxTokens: noteTokens }));
      if (reply === undefined) return;
      if (words.isNothing(reply.text)) {
        this.#irrelevant.push(hit.url);
        return;
      }
      this.#notes.push({ title: page.title === '' ? hit.title : page.title, url: page.url, note: reply.text.trim() });
    } catch (error) {
      if (isAboutCaller(error)) throw error;
      this.#unread.push({ url: hit.url, reason: reasonOf(error) });
    }
  }

  async #write(): Promise<CitedAnswer> {
    const { question, report, model } = this.#options;
    report({ done: 0.9, message: `writing from ${this.#notes.length} pages` });
    const prompt = { model, system: words.writer, prompt: words.write(question, this.#notes), maxTokens: answerTokens };
    const first = citedOnly((await this.#budget.ask(prompt)).text, this.#notes);
    if (first.sources.length > 0) return first;
    const again = await this.#within(() =>
      this.#budget.ask({ ...prompt, prompt: `${prompt.prompt}\n\n${words.cite}` }),
    );
    const second = again === undefined ? first : citedOnly(again.text, this.#notes);
    if (second.sources.length > 0) return second;
    throw new Problem(toolFailed, `The model ${model} wrote an answer without citing what it read. Use another model.`);
  }

  /** Asks while the answer can still be paid for. */
  async #ask(prompt: Prompt): Promise<Reply> {
    return this.#budget.ask({ ...prompt, model: this.#options.model }, this.#kept);
  }

  async #within<Answer>(work: () => Promise<Answer>): Promise<Answer | undefined> {
    try {
      return await work();
    } catch (error) {
      if (!(error instanceof BudgetExhausted)) throw error;
      this.#cut = true;
      return undefined;
    }
  }

  /** Share of the whole after so many rounds; the rest is for writing. */
  #done(rounds: number): number {
    return Math.max(0.02, (rounds / this.#options.depth.rounds) * 0.9);
  }

  #nothing(): Problem {
    if (this.#cut)
      return new Problem(
        toolFailed,
        'max_usd is too low to plan, read and write an answer. Raise it, reduce depth, or use a cheaper model.',
        { members: { searches: this.#searches, unread: this.#unread.slice(0, 20) } },
      );
    return nothingFound({
      searches: this.#searches.map((query) => ({ query, outcome: this.#outcomes.get(query) ?? 'not made' })),
      unread: this.#unread,
      irrelevant: this.#irrelevant,
    });
  }
}

function inTurn<Item>(lists: readonly (readonly Item[])[]): Item[] {
  const longest = Math.max(0, ...lists.map(({ length }) => length));
  return [...Array(longest).keys()].flatMap((index) => lists.flatMap((list) => list[index] ?? []));
}

const passing: readonly ProblemType[] = [modelFailed, modelRefused, modelTimeout, routerUnavailable];

/** Whether continuing is pointless: quota, keys, ledger, a job that another process has. */
function isAboutCaller(error: unknown): boolean {
  return !(error instanceof Problem) || !passing.includes(error.type);
}

function reasonOf(error: unknown): string {
  return error instanceof Problem ? error.message.slice(0, 300) : 'The page could not be read.';
}
