// Reads a generator and notices when it says nothing for a while, so that a stream can be kept alive.

/**
 * Makes the function that reads `source` on: it gives the next result, or undefined after `silenceMs` milliseconds
 * without one.
 * What was being waited for is not lost; the next call waits for the same result.
 */
export function readWithSilence<Value>(
  source: AsyncGenerator<Value, unknown, undefined>,
  silenceMs: number,
): () => Promise<IteratorResult<Value, unknown> | undefined> {
  let next: Promise<IteratorResult<Value, unknown>> | undefined;
  return async () => {
    next ??= source.next();
    const silence = Promise.withResolvers<undefined>();
    const timer = setTimeout(silence.resolve, silenceMs, undefined);
    const result = await Promise.race([next, silence.promise]).finally(() => {
      clearTimeout(timer);
    });
    if (result !== undefined) next = undefined;
    return result;
  };
}
