/**
 * `drover gates`: what stands before each provider: calls that are out, calls that wait, blocks and when they end;
 * one gate call by call; and how to lift a block, take out a call whose program is gone, or remove an unused gate.
 */
import type { GateDetail } from "../../protocol/index.ts";
import { answering, idOf } from "../shell/connection.ts";
import type { Output } from "../shell/output.ts";
import { plain } from "../shell/text.ts";
import type { Verb, VerbBody } from "../shell/verb.ts";
import { gateTable } from "../show/fleet-view.ts";
import { boxHeight, gateBox, schedulerBox } from "../show/scheduler-box.ts";

const id = { name: "<id>", about: "the gate" };
/** In a file or a pipe nothing else says how wide a box is. */
const COLUMNS = 80;
/** As high as all the calls that an answer lists, and what stands around them. */
const LINES_MAX = 1100;

const showOne = answering(
  (client, call) => client.gate(idOf(call)),
  (gate, output) => `${boxFor(gate, output)}\n`,
);
function boxFor(gate: GateDetail, { width, height, paint, now }: Output): string {
  const size = { width: width ?? COLUMNS, height: height === null ? LINES_MAX : boxHeight(height), paint };
  return schedulerBox(gateBox(gate, now()), size).join("\n");
}

const show: Verb<Record<never, never>> = {
  name: "show",
  summary: "draw one gate: the calls that are out, those that wait, its totals",
  takes: [id],
  examples: [["drover gates show anthropic/default", "the same as drover gates anthropic/default"]],
  run: showOne,
};

const reset: Verb<Record<never, never>> = {
  name: "reset",
  summary: "lift the block of a gate, and forget its throttles",
  takes: [id],
  examples: [["drover gates reset anthropic/default", "a caller has said more than the provider did"]],
  run: answering(
    (client, call) => client.resetGate(idOf(call)),
    ({ gate }) =>
      `${plain(gate)} has no block and no throttles; calls that are out stay out, and count (drover gates drop)\n`,
  ),
};

const drop: Verb<Record<never, never>> = {
  name: "drop",
  summary: "take a call out of its gate, or out of the line there, whose program is gone",
  takes: [{ name: "<permit>", about: "the id of the call, as drover gates <id> shows it" }],
  examples: [["drover gates drop call-17", "the next in line goes out in its place"]],
  run: answering(
    (client, call) => client.dropPermit(idOf(call)),
    ({ permitId }) => `${plain(permitId)} is out of its gate; what it had used by then is not known\n`,
  ),
};

const remove: Verb<Record<never, never>> = {
  name: "delete",
  summary: "remove a gate that the config does not name and no call uses",
  takes: [id],
  examples: [["drover gates delete mistyped/account", "a name that was used once"]],
  run: answering(
    (client, call) => client.removeGate(idOf(call)),
    ({ gate }) => `${plain(gate)} is removed\n`,
  ),
};

const list = answering(
  (client) => client.gates(),
  ({ count, gates }, output) =>
    count === 0
      ? "No gate yet: the first permit asked for creates one, or name it under gates: in drover.yml.\n"
      : gateTable(gates, output),
);

export const gatesVerb: VerbBody<Record<never, never>> = {
  takes: [{ name: "[id]", about: "the gate to draw; without one, all are listed" }],
  examples: [
    ["drover gates", "calls out and waiting, windows, and what is blocked until when"],
    ["drover gates anthropic/default", "who is out, who waits, for how long"],
  ],
  verbs: [show, reset, drop, remove],
  run: (call) => (call.args.length === 0 ? list(call) : showOne(call)),
};
