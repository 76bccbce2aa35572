/**
 * `drover top`: the fleet as it runs. On a terminal it stays until q is pressed; in a file or a pipe, with --once and
 * with --json it is one look.
 */
import { setTimeout as elapse } from "node:timers/promises";
import { clientFor } from "../shell/connection.ts";
import { EXIT } from "../shell/problem.ts";
import { interruptible } from "../shell/terminal.ts";
import { clip, plain } from "../shell/text.ts";
import type { Call, VerbBody } from "../shell/verb.ts";
import { boxesOf, boxHeight, hasCalls, hasTasks, schedulerBox } from "../show/scheduler-box.ts";
import { lookOnce } from "./look.ts";

type Flags = { readonly once?: boolean };

/** Of a frame that no screen limits. */
const COLUMNS = 80;
const ROWS = 24;

export const topVerb: VerbBody<Flags> = {
  about:
    "Watch the fleet: what runs and what waits, tasks, projects, workers, gates, events. q leaves it, ? shows the " +
    "keys. In a file or a pipe it prints one frame.",
  flags: [{ flags: "--once", about: "print one frame, and end" }],
  examples: [
    ["drover top", "the live picture; Tab goes to the next tab"],
    ["drover top --once", "the scheduler box, as text"],
    ["drover top --json", "the same for a program, as GET /scheduler/line answers it"],
  ],
  run: async (call) => {
    const { flags, terminal, output } = call;
    if (output.isJson || flags.once === true || terminal.screen === null) return once(call);
    const { watch } = await import("./watch.ts");
    return interruptible(terminal, (signal) =>
      watch(call, terminal.screen as NonNullable<typeof terminal.screen>, {
        signal,
        rest: (ms, until) => elapse(ms, undefined, { signal: until }).catch(() => {}),
      }),
    );
  },
};

async function once({ terminal, output, flags }: Call<Flags>): Promise<typeof EXIT.ok> {
  const rows = output.height ?? ROWS;
  const wanted = { tab: "scheduler", rows, isWide: false, filter: "" } as const;
  const { line, node } = await lookOnce(clientFor({ flags, terminal }), wanted, terminal.now);
  const width = Math.max(COLUMNS / 2, output.width ?? COLUMNS);
  const { paint } = output;
  const wrong = node.trouble === null ? [] : [paint("red", clip(plain(node.trouble), width))];
  const height = boxHeight(rows - wrong.length);
  // In a file or a pipe there is room for both.
  const isLarge = output.height === null && hasCalls(line) && hasTasks(line);
  const boxes = boxesOf(line, isLarge ? 2 * height : height, { isLarge });
  const lines = boxes.flatMap((placed) => schedulerBox(placed.box, { width, height: placed.height, paint }));
  output.answer(line, () => `${[...wrong, ...lines].join("\n")}\n`);
  return EXIT.ok;
}
