// Runs research in steps: plan searches, search, read pages and take notes, look for gaps, write the answer with
// citations. A budget limits the money and the number of model calls, and reserves the cost of writing the answer.
import { z } from 'zod';
import { Problem, type ProblemType } from '../../../../lib/problem.ts';
import { type Money, fromPicoDollars, zero } from '../../../billing/index.ts';
import { modelFailed, modelRefused, modelTimeout, routerUnavailable } from '../../../models/index.ts';
import { askJson, type Prompt, type Reply, type Spender } from '../../engine/spender.ts';
import { toolFailed } from '../../problems.ts';
import type { Progress } from '../../tool.ts';
import {
  type CitedAnswer,
  citeReminder,
  createLargestPrompt,
  formatGapsPrompt,
  formatPlanPrompt,
  formatReadPrompt,
  formatWritePrompt,
  isNothingNote,
  keepCitations,
  plannerRole,
  readerRole,
  type Source,
  writerRole,
} from './prompts.ts';

/** The extent of the research. */
export interface ResearchDepth {
  readonly rounds: number;
  /** Searches per round. */
  readonly queries: number;
  /** Pages in total. */
  readonly pages: number;
}

/** Access to the web. */
export interface ResearchWeb {
  /** @throws Problem */
  search(query: string): Promise<readonly Source[]>;
  read(url: string): Promise<Source & { readonly text: string }>;
}

export interface ResearchOptions {
  readonly question: string;
  readonly depth: ResearchDepth;
  readonly model: string;
  readonly models: Spender;
  readonly web: ResearchWeb;
  readonly limit: Money;
  readonly report: (progress: Progress) => void;
}

export interface ResearchFindings extends CitedAnswer {
  readonly searches: readonly string[];
  /** Useful pages, cited or not. */
  readonly read: readonly Source[];
  /** Pages and searches that failed. */
  readonly unread: readonly { readonly url: string; readonly reason: string }[];
  readonly calls: number;
  /** Whether the budget ended the research early. */
  readonly budgetReached: boolean;
}

const pageCharacters = 16_000;
const noteTokens = 600;
const answerTokens = 2_500;
const maxConcurrentReads = 3;
const queriesSchema = z.object({ queries: z.array(z.string().trim().min(2).max(300)).max(10) });

export class Research {
  readonly #options: ResearchOptions;
  readonly #budget: Budget;
  /** Reserved until the answer is written. */
  readonly #answerReserve: Money;
  readonly #notes: (Source & { readonly note: string })[] = [];
  readonly #searches: string[] = [];
  /** Outcome of each search, as text for error messages. */
  readonly #outcomes = new Map<string, string>();
  /** Pages that were read and say nothing about the question. */
  readonly #irrelevant: string[] = [];
  readonly #seenUrls = new Set<string>();
  readonly #unread: { url: string; reason: string }[] = [];
  #pagesTried = 0;
  #budgetReached = false;

  constructor(options: ResearchOptions) {
    const { models, limit, depth, question, model } = options;
    this.#options = options;
    this.#budget = new Budget(models, limit, 4 + depth.rounds * 2 + depth.pages);
    this.#answerReserve = models.maxCost({
      ...createLargestPrompt(question, depth.pages, noteTokens),
      model,
      maxTokens: answerTokens,
    });
  }

  /**
   * @throws Problem (tool-failed) if no relevant page could be read, and the problems of model calls
   */
  async run(): Promise<ResearchFindings> {
    const { depth } = this.#options;
    for (let round = 1; round <= depth.rounds && !this.#isBudgetReached(); round += 1) {
      const queries = await this.#planQueries(round);
      if (queries.length === 0) break;
      await this.#searchAndRead(queries, round);
    }
    if (this.#notes.length === 0) throw this.#createFailure();
    const cited = await this.#write();
    return {
      ...cited,
      searches: this.#searches,
      read: this.#notes.map(({ title, url }) => ({ title, url })),
      unread: this.#unread,
      calls: this.#budget.calls,
      budgetReached: this.#isBudgetReached(),
    };
  }

  #isBudgetReached(): boolean {
    return this.#budgetReached;
  }

  async #planQueries(round: number): Promise<string[]> {
    const { question, depth, report } = this.#options;
    report({
      done: this.#progressAfter(round - 1),
      message: round === 1 ? 'planning the searches' : 'looking for gaps',
    });
    const prompt =
      round === 1
        ? formatPlanPrompt(question, depth.queries)
        : formatGapsPrompt(question, depth.queries, this.#searches, this.#notes);
    const asked = await this.#askWithinBudget(() =>
      askJson((one) => this.#ask(one), { schema: queriesSchema, system: plannerRole, prompt, maxTokens: 400 }),
    );
    return (asked?.value.queries ?? []).filter((query) => !this.#searches.includes(query)).slice(0, depth.queries);
  }

  /** Searches, and reads the best results, taking them from each query in turn. */
  async #searchAndRead(queries: readonly string[], round: number): Promise<void> {
    const {
      depth: { pages, rounds },
      report,
    } = this.#options;
    report({ done: this.#progressAfter(round - 0.9), message: `searching: ${queries.join('; ')}` });
    this.#searches.push(...queries);
    const hits = interleave(await Promise.all(queries.map((query) => this.#search(query)))).filter(
      ({ url }) => !this.#seenUrls.has(url),
    );
    const chosen = [...new Map(hits.map((hit) => [hit.url, hit])).values()].slice(
      0,
      Math.min(Math.ceil(pages / rounds), pages - this.#pagesTried),
    );
    for (const { url } of chosen) this.#seenUrls.add(url);
    this.#pagesTried += chosen.length;
    const queue = chosen.entries();
    await Promise.all(
      Array.from({ length: maxConcurrentReads }, async () => {
        for (const [index, hit] of queue) {
          if (this.#isBudgetReached()) return;
          report({
            done: this.#progressAfter(round - 0.8 + (0.8 * index) / chosen.length),
            message: `reading ${hit.url}`,
          });
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
      this.#outcomes.set(query, `failed: ${describeError(error).replace(/\.$/, '')}`);
      this.#unread.push({ url: `search: ${query}`, reason: describeError(error) });
      return [];
    }
  }

  /**
   * Skips a page that cannot be read or noted. A problem with the caller, such as an exhausted quota, ends the
   * research.
   */
  async #read(hit: Source): Promise<void> {
    const { question, web } = this.#options;
    const page = await web.read(hit.url).catch((error: unknown) => {
      this.#unread.push({ url: hit.url, reason: describeError(error) });
    });
    if (page === undefined) return;
    try {
      const prompt = formatReadPrompt(question, page, page.text.slice(0, pageCharacters).toWellFormed());
      const reply = await this.#askWithinBudget(() => this.#ask({ system: readerRole, prompt, maxTokens: noteTokens }));
      if (reply === undefined) return;
      if (isNothingNote(reply.text)) {
        this.#irrelevant.push(hit.url);
        return;
      }
      this.#notes.push({ title: page.title === '' ? hit.title : page.title, url: page.url, note: reply.text.trim() });
    } catch (error) {
      if (shouldStop(error)) throw error;
      this.#unread.push({ url: hit.url, reason: describeError(error) });
    }
  }

  async #write(): Promise<CitedAnswer> {
    const { question, report, model } = this.#options;
    report({ done: 0.9, message: `writing from ${this.#notes.length} pages` });
    const prompt = {
      model,
      system: writerRole,
      prompt: formatWritePrompt(question, this.#notes),
      maxTokens: answerTokens,
    };
    const first = keepCitations((await this.#budget.ask(prompt)).text, this.#notes);
    if (first.sources.length > 0) return first;
    const again = await this.#askWithinBudget(() =>
      this.#budget.ask({ ...prompt, prompt: `${prompt.prompt}\n\n${citeReminder}` }),
    );
    const second = again === undefined ? first : keepCitations(again.text, this.#notes);
    if (second.sources.length > 0) return second;
    throw new Problem(toolFailed, `The model ${model} wrote an answer without citing what it read. Use another model.`);
  }

  /** Asks a model if the budget still covers the answer afterwards. */
  async #ask(prompt: Prompt): Promise<Reply> {
    return this.#budget.ask({ ...prompt, model: this.#options.model }, this.#answerReserve);
  }

  async #askWithinBudget<Answer>(work: () => Promise<Answer>): Promise<Answer | undefined> {
    try {
      return await work();
    } catch (error) {
      if (!(error instanceof BudgetExhausted)) throw error;
      this.#budgetReached = true;
      return undefined;
    }
  }

  /** Progress after a number of rounds, up to 0.9; the rest is for writing. */
  #progressAfter(rounds: number): number {
    return Math.max(0.02, (rounds / this.#options.depth.rounds) * 0.9);
  }

  #createFailure(): Problem {
    if (this.#budgetReached)
      return new Problem(
        toolFailed,
        'max_usd is too low to plan, read and write an answer. Raise it, reduce depth, or use a cheaper model.',
        { members: { searches: this.#searches, unread: this.#unread.slice(0, 20) } },
      );
    return createNothingFound({
      searches: this.#searches.map((query) => ({ query, outcome: this.#outcomes.get(query) ?? 'not made' })),
      unread: this.#unread,
      irrelevant: this.#irrelevant,
    });
  }
}

function interleave<Item>(lists: readonly (readonly Item[])[]): Item[] {
  const longest = Math.max(0, ...lists.map(({ length }) => length));
  return [...Array(longest).keys()].flatMap((index) => lists.flatMap((list) => list[index] ?? []));
}

const skippableProblems: readonly ProblemType[] = [modelFailed, modelRefused, modelTimeout, routerUnavailable];

/** Whether continuing is pointless, as with quota, keys, the ledger or a job that another process runs. */
function shouldStop(error: unknown): boolean {
  return !(error instanceof Problem) || !skippableProblems.includes(error.type);
}

function describeError(error: unknown): string {
  return error instanceof Problem ? error.message.slice(0, 300) : 'The page could not be read.';
}

/** Thrown when a call could cost more than the budget has left: the answer is then written from the notes so far. */
class BudgetExhausted extends Error {
  override readonly name = 'BudgetExhausted';
}

class Budget {
  readonly #models: Spender;
  readonly #limit: Money;
  readonly #maxCalls: number;
  /** Money spent. A call whose cost is unknown counts with its maximum. */
  #spent: Money = zero;
  /** Maximum cost of the calls in progress. */
  #held: Money = zero;
  #calls = 0;

  constructor(models: Spender, limit: Money, maxCalls: number) {
    this.#models = models;
    this.#limit = limit;
    this.#maxCalls = maxCalls;
  }

  get calls(): number {
    return this.#calls;
  }

  /**
   * Asks a model if the budget covers the call's maximum cost and `keep`. @throws BudgetExhausted, and the problems of
   * the call
   */
  async ask(prompt: Prompt, keep: Money = zero): Promise<Reply> {
    const maximum = this.#models.maxCost(prompt);
    if (this.#calls >= this.#maxCalls || this.#spent + this.#held + maximum + keep > this.#limit)
      throw new BudgetExhausted('the budget is exhausted');
    this.#calls += 1;
    this.#held = fromPicoDollars(this.#held + maximum);
    let cost = maximum;
    try {
      const reply = await this.#models.ask(prompt);
      cost = reply.cost ?? maximum;
      return reply;
    } finally {
      this.#held = fromPicoDollars(this.#held - maximum);
      this.#spent = fromPicoDollars(this.#spent + cost);
    }
  }
}

interface ResearchAttempts {
  readonly searches: readonly { readonly query: string; readonly outcome: string }[];
  /** Pages and searches that failed; a search is listed as `search: <query>`. */
  readonly unread: readonly { readonly url: string; readonly reason: string }[];
  /** URLs of pages that were read and say nothing about the question. */
  readonly irrelevant: readonly string[];
}

/** In the message, per kind; the members of the problem have more. */
const maxNamed = 6;
const maxMembers = 20;

function createNothingFound({ searches, unread, irrelevant }: ResearchAttempts): Problem {
  const pages = unread.filter(({ url }) => !url.startsWith('search: '));
  const sentences = [
    'No relevant page was found.',
    searches.length === 0
      ? 'The model planned no searches.'
      : `Searches: ${listFirst(searches.map(({ query, outcome }) => `"${query}" (${outcome})`))}.`,
    pages.length === 0
      ? ''
      : `Pages that failed: ${listFirst(pages.map(({ url, reason }) => `${url} (${trimPeriod(reason)})`))}.`,
    irrelevant.length === 0 ? '' : `Pages that say nothing about the question: ${listFirst(irrelevant)}.`,
    chooseAdvice(searches, pages.length, irrelevant.length),
  ];
  return new Problem(toolFailed, sentences.filter((sentence) => sentence !== '').join(' '), {
    members: {
      searches: searches.map(({ query }) => query),
      search_outcomes: searches.slice(0, maxMembers),
      unread: unread.slice(0, maxMembers),
      irrelevant: irrelevant.slice(0, maxMembers),
    },
  });
}

function chooseAdvice(searches: ResearchAttempts['searches'], failed: number, irrelevant: number): string {
  if (searches.length > 0 && searches.every(({ outcome }) => outcome.startsWith('failed')))
    return 'The search engine is at fault, not the question: try again later.';
  if (failed > 0 && irrelevant === 0) return 'Try again later, or ask for pages that can be fetched.';
  return 'Rephrase the question.';
}

function listFirst(items: readonly string[]): string {
  const more = items.length - maxNamed;
  return `${items.slice(0, maxNamed).join(', ')}${more > 0 ? ` and ${more} more` : ''}`;
}

function trimPeriod(reason: string): string {
  return reason.replace(/\.$/, '');
}
