// One chart of the corpus, and what a right answer to it is.

export interface ChartCase {
  readonly name: string;
  readonly input: Readonly<Record<string, unknown>>;
  /** Words that must be in the picture. */
  readonly texts?: readonly string[];
  /** It must be drawn with such a warning. */
  readonly warned?: RegExp;
  /** It must be refused, in such words. */
  readonly refused?: RegExp;
}
