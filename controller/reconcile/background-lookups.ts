// Runs slow lookups outside the cluster in the background, so that a dead server delays only its own apps.

/** Lookups by app. None has to survive a restart: a lost lookup is started again. */
export interface BackgroundLookups<Query, Result> {
  /** Starts a lookup, unless the same one is in progress. */
  start(key: string, identity: string, query: Query): void;
  /** Takes the result of exactly this lookup, once. */
  take(key: string, identity: string): Result | undefined;
  /** Forgets an app. */
  forget(key: string): void;
}

export interface LookupOptions<Query, Result> {
  /** Must not reject. */
  run: (query: Query) => Promise<Result>;
  /** Lookups of one group (a host) wait for each other beyond `limit`, and for no other group. */
  group: (query: Query) => string;
  limit: number;
  /** Called when a result is there to be taken. */
  onResult: (key: string) => void;
}

interface Lookup<Result> {
  readonly identity: string;
  result?: Result;
}

export function createBackgroundLookups<Query, Result>(
  options: LookupOptions<Query, Result>,
): BackgroundLookups<Query, Result> {
  const lookups = new Map<string, Lookup<Result>>();
  const groups = new Map<string, { running: number; waiting: (() => void)[] }>();

  function schedule(name: string, run: () => Promise<void>): void {
    const group = groups.get(name) ?? { running: 0, waiting: [] };
    groups.set(name, group);
    const begin = (): void => {
      group.running += 1;
      void run().finally(() => {
        group.running -= 1;
        group.waiting.shift()?.();
        if (group.running === 0) groups.delete(name);
      });
    };
    if (group.running < options.limit) begin();
    else group.waiting.push(begin);
  }

  return {
    start(key, identity, query) {
      if (lookups.get(key)?.identity === identity) return;
      const lookup: Lookup<Result> = { identity };
      lookups.set(key, lookup);
      schedule(options.group(query), async () => {
        if (lookups.get(key) !== lookup) return;
        lookup.result = await options.run(query);
        if (lookups.get(key) === lookup) options.onResult(key);
      });
    },
    take(key, identity) {
      const lookup = lookups.get(key);
      if (lookup?.result === undefined || lookup.identity !== identity) return undefined;
      lookups.delete(key);
      return lookup.result;
    },
    forget(key) {
      lookups.delete(key);
    },
  };
}
