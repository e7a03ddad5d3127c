// What can be done with a cluster on which Moorage runs.

export interface Target {
  up: () => Promise<void>;
  down: () => Promise<void>;
  /** Prints what is there; returns what is wrong. */
  status: () => Promise<string[]>;
}
