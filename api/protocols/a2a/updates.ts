// Events that are pushed on one side and read on the other, in order.

export class Updates<Event> {
  readonly #waiting: Event[] = [];
  #wake = Promise.withResolvers<undefined>();
  #over = false;

  push(event: Event): void {
    this.#waiting.push(event);
    this.#wake.resolve(undefined);
  }

  /** Nothing more comes. */
  end(): void {
    this.#over = true;
    this.#wake.resolve(undefined);
  }

  /** All events until the end, those from before included. */
  async *all(): AsyncGenerator<Event, void, undefined> {
    for (;;) {
      yield* this.#waiting.splice(0);
      if (this.#over && this.#waiting.length === 0) return;
      await this.#wake.promise;
      this.#wake = Promise.withResolvers();
      if (this.#over) this.#wake.resolve(undefined);
    }
  }
}
