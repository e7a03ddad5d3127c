// Knows from what the registry answers to a push whether it has space left: registries have no other way to say it.

/** A push that the registry had no space for. */
export interface Refusal {
  /** ISO 8601 */
  readonly at: string;
  readonly message: string;
}

export interface Fullness {
  /** Takes note of how a request that writes was answered. True when the registry had no space for it. */
  note(status: number, body: string): boolean;
  /** The last refusal, until a push succeeds again. */
  readonly refusal: Refusal | undefined;
}

/** The registry's own word (28 is ENOSPC, which it writes as a number), those of object stores, and Harbor's of a quota. */
const words =
  /no space left on device|"Err":\s*28\b|disk quota exceeded|insufficient (?:storage|space)|quota\b.{0,60}\bexceed|exceed the configured upper limit|XMinioStorageFull/i;

export const fullMessage = 'The registry has no space left: no space left on device.';

export function fullness(now: () => number = Date.now): Fullness {
  let refusal: Refusal | undefined;
  return {
    note(status, body) {
      const isFull = status === 507 || (status >= 400 && words.test(body));
      if (isFull) refusal = { at: new Date(now()).toISOString(), message: body.trim().slice(0, 300) };
      // What was uploaded is stored, so there is space again.
      else if (status === 201) refusal = undefined;
      return isFull;
    },
    get refusal() {
      return refusal;
    },
  };
}
