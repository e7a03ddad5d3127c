// One outline of the corpus, and what a right presentation of it has.

export interface DeckCase {
  readonly name: string;
  readonly outline: string;
  /** Titles of its slides, the continued ones without their number. */
  readonly titles?: readonly string[];
  /** Text that must stand in one paragraph of a slide. */
  readonly texts?: readonly string[];
  /** How many pictures are on its slides. */
  readonly pictures?: number;
  /** Numbers with which its numbered lists begin. */
  readonly starts?: readonly number[];
  readonly notes?: readonly string[];
  readonly warned?: RegExp;
  /** It must be refused, in such words. */
  readonly refused?: RegExp;
}

/** Address of the picture that the show and the tests serve. */
export const pictureUrl = 'https://pictures.test/ship.png';
