/**
 * `drover gates`: what stands before each provider: calls that are out, calls that wait, blocks and when they end;
 * one gate call by call; and how to lift a block or remove a gate that is not used.
 */
import { answering, idOf } from "../shell/connection.ts";
import { plain } from "../shell/text.ts";
import type { Verb, VerbBody } from "../shell/verb.ts";
import { callTable, gateTable, gateTotals } from "../show/fleet-view.ts";

const id = { name: "<id>", about: "the gate" };

const show: Verb<Record<never, never>> = {
  name: "show",
  summary: "show one gate: its totals, and the calls that are out or wait",
  takes: [id],
  examples: [["drover gates show anthropic/default", "who is out, who waits, for how long"]],
  run: answering(
    (client, call) => client.gate(idOf(call)),
    (gate, output) => gateTable([gate], output) + gateTotals(gate) + callTable(gate, output),
  ),
};

const reset: Verb<Record<never, never>> = {
  name: "reset",
  summary: "lift the block of a gate, and forget its throttles",
  takes: [id],
  examples: [["drover gates reset anthropic/default", "a caller has said more than the provider did"]],
  run: answering(
    (client, call) => client.resetGate(idOf(call)),
    ({ gate }) => `${plain(gate)} is open again: it begins with one call, to see\n`,
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

export const gatesVerb: VerbBody<Record<never, never>> = {
  examples: [["drover gates", "calls out and waiting, windows, and what is blocked until when"]],
  verbs: [show, reset, remove],
  run: answering(
    (client) => client.gates(),
    ({ count, gates }, output) =>
      count === 0
        ? "No gate yet: the first permit asked for creates one, or name it under gates: in drover.yml.\n"
        : gateTable(gates, output),
  ),
};
