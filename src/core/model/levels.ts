/**
 * What the levels of projects are measured from.
 */
export type Levels = {
  /** The instant from which levels are halved. */
  origin: number;
  /** The highest level of any project. */
  highest: number;
};
