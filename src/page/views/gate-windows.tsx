/**
 * How full a gate is: calls that are out, requests and tokens in their windows, and whether it is blocked.
 */
import type { JSX } from "preact";
import type { GateJson } from "../../protocol/generated/index.ts";
import { brief, clock, count, outOf, plural, span } from "../data/words.ts";
import { fillTone, Meter, type Tone } from "../parts/pieces.tsx";

export const isBlocked = ({ blockedUntil }: GateJson, now: number): boolean =>
  blockedUntil !== undefined && Date.parse(blockedUntil) > now;

export function GateState({ gate, now }: { gate: GateJson; now: number }): JSX.Element {
  if (isBlocked(gate, now))
    return <span class="badge is-blocked">blocked, opens in {clock(Date.parse(gate.blockedUntil ?? "") - now)}</span>;
  if (gate.slowStart !== null) return <span class="badge is-paused">recovers, {gate.limit} at a time</span>;
  if (gate.heldUntil !== undefined && gate.queued > 0)
    return <span class="badge is-paused">full, room in {clock(Date.parse(gate.heldUntil) - now)}</span>;
  return <span class="badge is-active">open</span>;
}

export function Windows({ gate }: { gate: GateJson }): JSX.Element {
  const { running, limit, requests, requestsUsed, windowMs, tokensUsed } = gate;
  const windows = [
    ["a minute", tokensUsed.perMinute],
    ["an hour", tokensUsed.perHour],
    ["a day", tokensUsed.perDay],
  ] as const;
  const line = (
    name: string,
    used: number,
    most: number,
    shown: (value: number) => string,
    tone?: Tone,
  ): JSX.Element => (
    <>
      <dt>{name}</dt>
      <dd>
        <Meter
          part={most === 0 ? 1 : used / most}
          label={`${name} of ${gate.id}`}
          text={outOf(used, most, shown)}
          tone={tone ?? fillTone(most === 0 ? 1 : used / most, "info")}
        />
      </dd>
    </>
  );
  return (
    <>
      <dl class="facts gate-windows">
        {line("Calls out", running, limit, count, running > limit ? "warn" : "info")}
        {line(`Requests in ${windowMs === 60_000 ? "a minute" : span(windowMs)}`, requestsUsed, requests, count)}
        {windows.map(([name, window]) =>
          window === null ? null : line(`Tokens in ${name}`, window.used, window.limit, brief),
        )}
      </dl>
      {running > limit ? (
        <p class="small warn gate-foot">
          {plural(running - limit, "call")} went out before the limit sank: the next goes when{" "}
          {count(running - limit + 1)} have come back.
        </p>
      ) : null}
    </>
  );
}
