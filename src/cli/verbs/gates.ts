/**
 * `drover gates`: what stands before each provider: calls that are out, calls that wait, blocks and when they end;
 * one gate call by call; and how to lift a block or remove a gate that is not used.
 */
import { clientFor } from "../shell/connection.ts";
import { EXIT } from "../shell/problem.ts";
import { plain } from "../shell/text.ts";
import type { Verb, VerbBody } from "../shell/verb.ts";
import { callTable, gateTable, gateTotals } from "../show/fleet-view.ts";

const id = { name: "<id>", about: "the gate" };

const show: Verb<Record<never, never>> = {
  name: "show",
  summary: "show one gate: its totals, and the calls that are out or wait",
  takes: [id],
  examples: [["drover gates show anthropic/default", "who is out, who waits, for how long"]],
  run: async (call) => {
    const gate = await clientFor(call).gate(call.args[0] ?? "");
    call.output.answer(gate, () => gateTable([gate], call.output) + gateTotals(gate) + callTable(gate, call.output));
    return EXIT.ok;
  },
};

const reset: Verb<Record<never, never>> = {
  name: "reset",
  summary: "lift the block of a gate, and forget its throttles",
  takes: [id],
  examples: [["drover gates reset anthropic/default", "a caller has said more than the provider did"]],
  run: async (call) => {
    const answer = await clientFor(call).resetGate(call.args[0] ?? "");
    call.output.answer(answer, () => `${plain(answer.gate)} is open again: it begins with one call, to see\n`);
    return EXIT.ok;
  },
};

const remove: Verb<Record<never, never>> = {
  name: "delete",
  summary: "remove a gate that the config does not name and no call uses",
  takes: [id],
  examples: [["drover gates delete mistyped/account", "a name that was used once"]],
  run: async (call) => {
    const answer = await clientFor(call).removeGate(call.args[0] ?? "");
    call.output.answer(answer, () => `${plain(answer.gate)} is removed\n`);
    return EXIT.ok;
  },
};

export const gatesVerb: VerbBody<Record<never, never>> = {
  examples: [["drover gates", "calls out and waiting, windows, and what is blocked until when"]],
  verbs: [show, reset, remove],
  run: async (call) => {
    const list = await clientFor(call).gates();
    call.output.answer(list, () =>
      list.count === 0
        ? "No gate yet: the first permit asked for creates one, or name it under gates: in drover.yml.\n"
        : gateTable(list.gates, call.output),
    );
    return EXIT.ok;
  },
};
