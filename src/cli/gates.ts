/**
 * `drover gates`: what stands before each provider: calls that are out, calls that wait, blocks and when they end.
 */
import { clientFor } from "./connection.ts";
import { EXIT } from "./exit-code.ts";
import { gateTable } from "./fleet-view.ts";
import type { Verb } from "./verb.ts";

export const gatesVerb: Verb<Record<never, never>> = {
  name: "gates",
  summary: "list the gates before LLM providers",
  examples: [["drover gates", "calls out and waiting, windows, and what is blocked until when"]],
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
