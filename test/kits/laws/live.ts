/**
 * Living through a history: decide, apply, pump until nothing is left.
 *
 * Laws look in through a watcher, at the same points for all of them: before a command is decided, after each
 * event, and at every decision of the pump. A law that breaks is reported with the story that led there, command
 * by command.
 */
import type { Instant } from "../../../src/core/base/brand.ts";
import { decide } from "../../../src/core/decide.ts";
import { emptyState } from "../../../src/core/empty-state.ts";
import { evolve } from "../../../src/core/evolve.ts";
import type { Command } from "../../../src/core/model/commands.ts";
import type { Event } from "../../../src/core/model/events.ts";
import type { State } from "../../../src/core/model/state.ts";
import { snapshotLines } from "../../../src/core/snapshot/snapshot.ts";
import { commandFor, configOf, diceFrom, moodOf, pauseOf, STARTED_AT } from "./histories.ts";

/** What one command may set off at most before the test calls it endless. */
const PUMPS_MAX = 2000;
const PUMPED_PERCENT = 80;

export type Watcher = {
  /** Before anything is decided; the state must be left as it is. */
  readonly onCommand?: (state: State, command: Command, now: Instant) => void;
  /** What a decision came to, before it is applied. */
  readonly onDecision?: (state: State, command: Command, events: readonly Event[], now: Instant) => void;
  readonly onEvent?: (state: State, event: Event) => void;
};
/** A story is written down only when somebody is to read it: that would be a sixth of the work. */
type Told = { readonly mark: string; readonly what: Command | Event };
export type Life = { readonly state: State; readonly log: Event[]; readonly story: Told[] };

/** The first step always sets a config. */
export function live(seeds: readonly number[], watcher: Watcher = {}): Life {
  const life: Life = { state: emptyState(), log: [], story: [] };
  try {
    let now = STARTED_AT as Instant;
    const mood = moodOf(diceFrom(~(seeds[0] ?? 0)));
    for (const [index, seed] of seeds.entries()) {
      const dice = diceFrom(seed);
      now = Math.max(life.state.at, now + pauseOf(dice)) as Instant;
      const pumps = dice.chance(PUMPED_PERCENT);
      step(
        life,
        index === 0 ? { type: "set-config", config: configOf(dice) } : commandFor(dice, mood, life.state, now),
        now,
        watcher,
      );
      if (pumps || index === seeds.length - 1) pumpDry(life, now, watcher);
    }
  } catch (thrown) {
    if (thrown instanceof Error) thrown.message += `\nafter:\n${writtenDown(life.story)}`;
    throw thrown;
  }
  return life;
}

const writtenDown = (story: readonly Told[]): string =>
  story.map(({ mark, what }) => `${mark} ${JSON.stringify(what)}`).join("\n");

/** Decides one command and applies what follows; says whether anything did. */
export function step(life: Life, command: Command, now: Instant, watcher: Watcher): boolean {
  const { state, log, story } = life;
  if (command.type !== "pump") story.push({ mark: String(now), what: command });
  watcher.onCommand?.(state, command, now);
  const decided = decide(state, command, now);
  if (!decided.ok) return false;
  const { events } = decided.value;
  watcher.onDecision?.(state, command, events, now);
  for (const event of events) {
    story.push({ mark: `    ${state.seq + 1}`, what: event });
    evolve(state, event);
    log.push(event);
    watcher.onEvent?.(state, event);
  }
  return events.length > 0;
}

export function pumpDry(life: Life, now: Instant, watcher: Watcher): void {
  for (let pumps = 0; step(life, { type: "pump" }, now, watcher); pumps++) {
    if (pumps >= PUMPS_MAX) throw new Error(`the pump never runs dry: over ${PUMPS_MAX} turns at one instant`);
  }
}

export function replay(events: Iterable<Event>): State {
  const state = emptyState();
  for (const event of events) evolve(state, event);
  return state;
}

export const bytesOf = (state: State): string => [...snapshotLines(state)].join("\n");
