/**
 * The last tenth of what all share is kept for those who have little of it.
 *
 * One caller that fills a queue, or takes every name there is, would shut out everybody else. So when nine tenths are
 * taken, only a project or an agent that holds less than a hundredth of the whole gets more. Where there are fewer than
 * ten nothing is kept.
 */

/** How much of it is kept. */
export const keptOf = (max: number): number => Math.floor(max / 10);

/** Whether what is left is kept for others: `used` of `max` is taken, `mine` of it by the caller. */
export const isKeptForOthers = (max: number, used: number, mine: number): boolean =>
  used >= max - keptOf(max) && mine >= max / 100;
