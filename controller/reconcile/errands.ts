// Runs slow questions to the outside beside the reconciler, so that a dead server holds up nobody else.

/** Questions by app. Nothing here must survive: a lost question is asked again. */
export interface Errands<Question, Answer> {
  /** Starts asking, unless the same question is on its way. */
  start(key: string, identity: string, question: Question): void;
  /** Takes the answer to exactly this question, once. */
  take(key: string, identity: string): Answer | undefined;
  /** Forgets an app. */
  forget(key: string): void;
}

/** Settings. */
export interface ErrandOptions<Question, Answer> {
  /** Must not reject. */
  run: (question: Question) => Promise<Answer>;
  /** Questions of one group (a host) wait for each other beyond `limit`, and for no other group. */
  group: (question: Question) => string;
  limit: number;
  /** Called when an answer is there to be taken. */
  answered: (key: string) => void;
}

interface Errand<Answer> {
  readonly identity: string;
  answer?: Answer;
}

/** Makes an empty set of errands. */
export function createErrands<Question, Answer>(options: ErrandOptions<Question, Answer>): Errands<Question, Answer> {
  const errands = new Map<string, Errand<Answer>>();
  const lanes = new Map<string, { running: number; waiting: (() => void)[] }>();

  function enter(group: string, run: () => Promise<void>): void {
    const lane = lanes.get(group) ?? { running: 0, waiting: [] };
    lanes.set(group, lane);
    const begin = (): void => {
      lane.running += 1;
      void run().finally(() => {
        lane.running -= 1;
        lane.waiting.shift()?.();
        if (lane.running === 0) lanes.delete(group);
      });
    };
    if (lane.running < options.limit) begin();
    else lane.waiting.push(begin);
  }

  return {
    start(key, identity, question) {
      if (errands.get(key)?.identity === identity) return;
      const errand: Errand<Answer> = { identity };
      errands.set(key, errand);
      enter(options.group(question), async () => {
        if (errands.get(key) !== errand) return;
        errand.answer = await options.run(question);
        if (errands.get(key) === errand) options.answered(key);
      });
    },
    take(key, identity) {
      const errand = errands.get(key);
      if (errand?.answer === undefined || errand.identity !== identity) return undefined;
      errands.delete(key);
      return errand.answer;
    },
    forget(key) {
      errands.delete(key);
    },
  };
}
