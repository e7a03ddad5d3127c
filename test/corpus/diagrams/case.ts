// One source of the corpus of diagrams, and what a right answer to it is.

export interface DiagramCase {
  readonly name: string;
  readonly source: string;
  /** Words that must be in the picture. */
  readonly texts?: readonly string[];
  /** What must be in the SVG besides. */
  readonly marks?: RegExp;
  /** It must be drawn with such a warning. */
  readonly warned?: RegExp;
  /** It must be refused, in such words. */
  readonly refused?: RegExp;
}
