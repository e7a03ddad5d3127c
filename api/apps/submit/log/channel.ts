// A bounded queue between the producers of events and their reader.

/** A queue whose writers wait while it is full. */
export interface Channel<Item> extends AsyncIterable<Item> {
  /** Resolves when the item is in; at once (and drops it) after `close`. */
  push(item: Item): Promise<void>;
  /** No item comes after those that are in. */
  close(): void;
}

/** Makes a channel that holds up to `capacity` items. For one reader. */
export function createChannel<Item>(capacity: number): Channel<Item> {
  const items: Item[] = [];
  let closed = false;
  let changed = Promise.withResolvers<undefined>();
  const signal = (): void => {
    changed.resolve(undefined);
    changed = Promise.withResolvers<undefined>();
  };
  const isClosed = (): boolean => closed;
  return {
    async push(item) {
      while (items.length >= capacity && !isClosed()) await changed.promise;
      if (isClosed()) return;
      items.push(item);
      signal();
    },
    close() {
      closed = true;
      signal();
    },
    async *[Symbol.asyncIterator]() {
      for (;;) {
        while (items.length > 0) {
          const item = items.shift() as Item;
          signal();
          yield item;
        }
        if (isClosed()) return;
        await changed.promise;
      }
    },
  };
}
